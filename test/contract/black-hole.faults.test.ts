import { beforeAll, describe, expect, test } from 'vitest'
import {
  leaveEffect,
  makeCall,
  makeGate,
  openProxy,
  openShop,
  PLACES,
  POOLERS,
  type Shop,
  settleWithin,
  waitUntil,
} from './shop.ts'

const SOON_MS = 30_000
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const WAYS = POOLERS.flatMap((pooler) => PLACES.map((place) => ({ pooler, place })))

describe.each(WAYS)(
  'a winner that vanished $place without a word, with pooler $pooler',
  ({ pooler, place }) => {
    const bounds = {
      pooler,
      idleInTransactionMaxMs: 500,
      transactionMaxMs: 3_000,
      statementMaxMs: 1_000,
      connectionWaitMaxMs: 2_000,
      settleMaxMs: 10_000,
    }

    /** A door through a proxy whose connections have fallen silent while its function was at work. */
    async function loseWinner(call: ReturnType<typeof makeCall> & { exclusive?: boolean }) {
      const { proxy, pool } = await openProxy(shop, { place })
      const once = shop.open({ pool, store: bounds, deadlineMs: 10_000 })
      const gate = makeGate()
      const told = once
        .transaction(call, async (tx) => {
          await tx.query('INSERT INTO transfers VALUES ($1, 5)', [call.key])
          await gate.pass()
          return 'the vanished one'
        })
        .then(
          (result) => ({ result, code: null }),
          (error: { code?: string }) => ({ result: null, code: error.code ?? String(error) }),
        )
      await gate.reached
      proxy.setFault({ kind: 'black_hole' })
      await proxy.waitFor(({ connectionsBlackHoled }) => connectionsBlackHoled > 0)
      // New connections are sound; those that fell silent stay so.
      proxy.setFault(null)
      return { gate, told }
    }

    async function countTransfers(reference: string): Promise<number> {
      const { rows } = await shop.observer.query('SELECT 1 FROM transfers WHERE reference = $1', [reference])
      return rows.length
    }

    test('frees a row that a duplicate waits for, and is told what became of it', async () => {
      const call = makeCall()
      const { gate, told } = await loseWinner(call)
      const once = shop.open({ store: { pooler, lockWaitMaxMs: 20_000 } })
      const duplicate = await settleWithin(
        SOON_MS,
        once.transaction(call, async (tx) => {
          await tx.query('INSERT INTO transfers VALUES ($1, 5)', [call.key])
          return 'the duplicate'
        }),
      )
      expect(duplicate).toEqual({ outcome: 'executed', value: 'the duplicate' })
      gate.open()
      const { result, code } = await settleWithin(SOON_MS, told)
      if (result === null) expect(code).toBe('outcome_unknown')
      else expect(result).toEqual({ outcome: 'replayed', value: 'the duplicate' })
      expect(await countTransfers(call.key)).toBe(1)
    })

    test('frees an exclusive key', async () => {
      const call = { ...makeCall(), exclusive: true }
      const { gate, told } = await loseWinner(call)
      const once = shop.open({ store: { pooler } })
      let outcome = ''
      await waitUntil('the key is free', async () => {
        const result = await once.transaction(call, async (tx) => {
          await tx.query('INSERT INTO transfers VALUES ($1, 5)', [call.key])
          return 'the duplicate'
        })
        outcome = result.outcome
        return outcome !== 'in_progress'
      })
      expect(outcome).toBe('executed')
      gate.open()
      const { result, code } = await settleWithin(SOON_MS, told)
      if (result === null) expect(code).toBe('outcome_unknown')
      else expect(result).toEqual({ outcome: 'replayed', value: 'the duplicate' })
      expect(await countTransfers(call.key)).toBe(1)
    })

    test('and nobody retries: it takes effect once at most, and what is told is what is there', async () => {
      const call = makeCall()
      const { gate, told } = await loseWinner(call)
      gate.open()
      const { result, code } = await settleWithin(SOON_MS, told)
      const transfers = await countTransfers(call.key)
      if (result !== null) expect([result.outcome, transfers]).toEqual(['executed', 1])
      else if (code !== 'outcome_unknown') expect([code, transfers]).toEqual([code, 0])
      const once = shop.open({ store: { pooler } })
      const last = await once.transaction(call, async (tx) => {
        await tx.query('INSERT INTO transfers VALUES ($1, 5)', [call.key])
        return 'the vanished one'
      })
      expect(last).toEqual({ outcome: transfers === 1 ? 'replayed' : 'executed', value: 'the vanished one' })
      expect(await countTransfers(call.key)).toBe(1)
    })

    test('only the answers are lost: it did take effect, and that is told', async () => {
      const { proxy, pool } = await openProxy(shop, { place })
      const once = shop.open({ pool, store: bounds, deadlineMs: 10_000 })
      const call = makeCall()
      const told = await settleWithin(
        SOON_MS,
        once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          proxy.setFault({ kind: 'black_hole', direction: 'to_client' })
          await proxy.waitFor(({ connectionsBlackHoled }) => connectionsBlackHoled > 0)
          proxy.setFault(null)
          return 'done'
        }),
      )
      expect(told).toMatchObject({ value: 'done' })
      expect(await shop.countEffects(call.key)).toBe(1)
    })
  },
)
