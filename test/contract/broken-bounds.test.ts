/** Where two troubles meet: each of these once made an effect happen twice, a call hang, or a process end. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import {
  catchError,
  leaveEffect,
  makeCall,
  openProxy,
  openShop,
  PLACES,
  type Shop,
  waitUntil,
} from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** What functions do when the connection of their query breaks. */
const MANNERS: readonly (readonly [string, (tx: PostgresTx, sent: Promise<unknown>) => Promise<unknown>])[] =
  [
    ['lets the error pass', (_, sent) => sent],
    ['swallows the error', (_, sent) => sent.catch(() => 'fine')],
    ['swallows it and goes on', (tx, sent) => sent.catch(() => tx.query('SELECT 1').catch(() => 'fine'))],
  ]

describe('a COMMIT hidden in a longer text, whose answer is lost', () => {
  const hidden = (key: string) => `INSERT INTO effects (note) VALUES ('${key}'); COMMIT; SELECT pg_sleep(5)`

  const ways = PLACES.flatMap((place) => ['new', 'retryable'].map((key) => ({ place, key })))

  describe.each(ways)('$place, with a $key key', ({ place, key }) => {
    test.each(MANNERS)('is not taken for a rollback by a function that %s', async (_, goOn) => {
      const { proxy, pool } = await openProxy(shop, { place })
      const once = shop.open({ pool })
      await once.start()
      const call = makeCall()
      if (key === 'retryable')
        await catchError(once.transaction(call, () => Promise.reject(new Error('first'))))
      const told = catchError(once.transaction(call, (tx) => goOn(tx, tx.query(hidden(call.key)))))
      await waitUntil('it is committed', async () => (await shop.countEffects(call.key)) > 0)
      proxy.setFault({ kind: 'reset' })
      await proxy.waitFor((stats) => stats.connectionsOpen === 0)
      proxy.setFault(null)
      expect(await told).toMatchObject({ code: 'transaction_ended_inside' })
      const again = await shop.open().transaction(call, async (tx) => leaveEffect(tx, call.key))
      expect(again.outcome).not.toBe('executed')
      expect(await shop.countEffects(call.key)).toBe(1)
    })
  })

  test('is not taken for a rollback when the time runs out', async () => {
    const once = shop.open()
    const call = { ...makeCall(), deadlineMs: 500 }
    const told = await catchError(once.transaction(call, (tx) => tx.query(hidden(call.key)).then(() => 1)))
    expect(told).toMatchObject({ code: 'transaction_ended_inside' })
    expect((await once.explain(call)).state).toBe('unknown')
    expect(await shop.countEffects(call.key)).toBe(1)
  })
})

describe('the time of a call', () => {
  test.each([
    ['a plain statement', 'SELECT $1::int', [1]],
    ['a text with several statements', 'SELECT 1; SELECT 2', undefined],
  ])('ends while it waits for a connection for %s', async (_, text, values) => {
    const pool = shop.database.pool({ max: 2 })
    const once = shop.open({ pool })
    await once.start()
    const taken: { release(): void }[] = []
    const error = await catchError(
      once.transaction({ ...makeCall(), deadlineMs: 400 }, async (tx) => {
        // Others take all connections before the work has asked for one.
        taken.push(await pool.connect(), await pool.connect())
        await tx.query(text, values)
      }),
    )
    expect(error).toMatchObject({ code: 'deadline_exceeded' })
    for (const client of taken) client.release()
    // Nothing is left waiting: both connections are there for others.
    expect(
      (await once.transaction(makeCall(), async (tx) => (await tx.query('SELECT 1')).rowCount)).outcome,
    ).toBe('executed')
    expect(pool.waitingCount).toBe(0)
  })
})

describe('a pool that others use too', () => {
  test.each(['BEGIN', 'BEGIN; SELECT 1 / 0'])('may hand out a client after %s', async (left) => {
    const pool = shop.database.pool({ max: 1 })
    const careless = await pool.connect()
    await careless.query(left).catch(() => {})
    careless.release()
    const once = shop.open({ pool })
    const call = makeCall()
    const result = await once.transaction(call, async (tx) => leaveEffect(tx, call.key))
    expect(result.outcome).toBe('executed')
    // Durable at once, and not when somebody ends the transaction that was left.
    expect(await shop.countEffects(call.key)).toBe(1)
  })
})

describe('queries that nobody awaits', () => {
  test('do not end the process when they are refused', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    const once = shop.open()
    let late: (() => unknown) | undefined
    await once.transaction(makeCall(), async (tx) => {
      void tx.query('COMMIT')
      late = () => void tx.query('SELECT 1')
    })
    late?.()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })
})

describe('a transaction inside another', () => {
  test('that ended itself does not make the outer one unknown', async () => {
    const once = shop.open()
    const [outer, inner] = [makeCall(), makeCall()]
    const error = await catchError(
      once.transaction(outer, async (tx) => {
        await leaveEffect(tx, outer.key)
        await once.transaction(inner, (own) => own.query('SELECT 1; COMMIT').then(() => 1))
      }),
    )
    expect(error).toMatchObject({ code: 'transaction_ended_inside' })
    expect((await once.explain(inner)).state).toBe('unknown')
    expect((await once.explain(outer)).state).toBe('retryable')
    expect(await shop.countEffects(outer.key)).toBe(0)
  })
})
