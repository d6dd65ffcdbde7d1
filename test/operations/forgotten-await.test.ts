import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/entries/limits.ts'
import { type Op, operation, reply } from '../../src/index.ts'
import { completer } from '../../src/workers/index.ts'
import { catchError, leaveEffect, makeGate, openShop, type Shop, waitUntil } from '../contract/shop.ts'

let shop: Shop
/** Rejections that no code has heard: each would have ended the process. */
const unheard: unknown[] = []
const note = (reason: unknown) => unheard.push(reason)

beforeAll(async () => {
  shop = await openShop()
  process.on('unhandledRejection', note)
})
afterAll(() => void process.off('unhandledRejection', note))

const callOf = () => ({ account: 'acct_1', key: randomUUID(), input: null })

async function stateOf(key: string) {
  const { rows } = await shop.observer.query(
    'SELECT state, error_code FROM onlyonce.records WHERE key = $1',
    [key],
  )
  return rows[0]
}

/** Lets Node come to the moment at which it tells of rejections that no code has heard. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

const FORGOTTEN: Readonly<Record<string, (op: Op) => unknown>> = {
  'two atomic steps': (op) => {
    op.transaction('first', async () => 1)
    op.transaction('second', async () => 2)
  },
  'an atomic step that throws': (op) => {
    op.transaction('first', async (tx) => {
      await tx.query('SELECT 1')
      throw new Error('the step fails')
    })
  },
  'a call that throws': (op) => {
    op.call('called', {
      idempotent: false,
      call: async () => {
        throw new Error('socket hang up')
      },
    })
  },
  'an undo': (op) => {
    op.undo(reply(409, {}))
    op.undo(reply(409, {}))
  },
}

describe('a function that ends without awaiting', () => {
  test.each(Object.entries(FORGOTTEN))(
    '%s is told steps_overlap, and the process lives',
    async (name, forget) => {
      const once = shop.open()
      const forgetful = operation(`forgotten.${Object.keys(FORGOTTEN).indexOf(name)}`, async (op) => {
        forget(op)
        return reply(201)
      })
      expect(await catchError(once.run(forgetful, callOf()))).toMatchObject({ code: 'steps_overlap' })
      await once.close()
      await nextTurn()
      expect(unheard).toEqual([])
    },
  )

  test('its last call is parked after so many owners, and none of them ends', async () => {
    const once = shop.open()
    const forgetful = operation('forgotten.owners', async (op) => {
      await op.transaction('noted', (tx) => leaveEffect(tx, op.key))
      op.call('called', { call: async () => 1 })
      return reply(201)
    })
    const call = callOf()
    await catchError(once.run(forgetful, call))
    const worker = completer(shop.open({ operations: [forgetful] }), { graceMs: 1 })
    for (let owners = 1; owners <= LIMITS.ownersMax; owners += 1) {
      expect(await stateOf(call.key)).toMatchObject({ state: 'in_progress' })
      await shop.observer.query(
        `UPDATE onlyonce.records SET lease_until = clock_timestamp() - interval '1 hour' WHERE key = $1`,
        [call.key],
      )
      await worker.runOnce()
    }
    expect(await stateOf(call.key)).toEqual({ state: 'parked', error_code: 'owners_exhausted' })
    expect(await shop.countEffects(call.key)).toBe(1)
    expect(unheard).toEqual([])
  })

  test('a step that threw meanwhile has thrown', async () => {
    const pool = shop.database.pool({ max: 4 })
    const once = shop.open({ pool })
    const failed = new Error('the step fails')
    const gate = makeGate()
    const forgetful = operation('forgotten.threw', async (op) => {
      op.transaction('first', async (tx) => {
        await leaveEffect(tx, op.key)
        gate.pass()
        throw failed
      })
      await gate.reached
      await waitUntil('the step is rolled back', async () => pool.idleCount === pool.totalCount)
      return reply(201)
    })
    expect(await catchError(once.run(forgetful, callOf()))).toBe(failed)
    expect(unheard).toEqual([])
  })

  test('a step that was refused is told why', async () => {
    const once = shop.open()
    const forgetful = operation('forgotten.refused', async (op) => {
      await op.transaction('noted', async () => 1)
      op.transaction('noted', async () => 2)
      return reply(201)
    })
    expect(await catchError(once.run(forgetful, callOf()))).toMatchObject({ code: 'option_invalid' })
    expect(unheard).toEqual([])
  })

  test('an event of a step rolls the step back when the event cannot be written', async () => {
    const once = shop.open()
    const forgetful = operation('forgotten.event', async (op) => {
      await op.transaction('noted', async (tx) => {
        await leaveEffect(tx, op.key)
        op.emit(tx, 'payment.created', { amount: 1n })
      })
      return reply(201)
    })
    const call = callOf()
    expect(await catchError(once.run(forgetful, call))).toMatchObject({ code: 'value_not_serializable' })
    expect(await shop.countEffects(call.key)).toBe(0)
    expect(unheard).toEqual([])
  })
})

test('a function that has caught what a step threw answers as it likes', async () => {
  const once = shop.open()
  const careful = operation('forgotten.caught', async (op) => {
    const refused = await op
      .transaction('first', async () => {
        throw new Error('no')
      })
      .catch(() => true)
    return reply(402, { refused })
  })
  expect(await once.run(careful, callOf())).toMatchObject({ outcome: 'executed', status: 402 })
})
