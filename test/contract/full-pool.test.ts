import { beforeAll, describe, expect, test } from 'vitest'
import { OnlyonceError } from '../../src/index.ts'
import {
  catchError,
  leaveEffect,
  makeCall,
  openShop,
  POOLERS,
  type Shop,
  settleWithin,
  waitUntil,
} from './shop.ts'

/** Far above the bounds that the tests set, far below the limit of a test. */
const SOON_MS = 20_000
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

describe.each(POOLERS)('a pool of one connection, with pooler %s', (pooler) => {
  const bounds = { pooler, idleInTransactionMaxMs: 300, connectionWaitMaxMs: 5_000 }

  test('waiting for the pool inside a transaction is a clear error, and the pool works afterwards', async () => {
    const pool = shop.database.pool({ max: 1 })
    const once = shop.open({ pool, store: bounds })
    const call = makeCall()
    const error = await settleWithin(
      SOON_MS,
      catchError(
        once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          await pool.query('SELECT 1')
          await leaveEffect(tx, call.key)
        }),
      ),
    )
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(error).toMatchObject({ code: 'transaction_idle', status: 503 })
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await settleWithin(SOON_MS, pool.query('SELECT 1 AS one'))).rows).toEqual([{ one: 1 }])
    const retry = once.transaction(call, (tx) => leaveEffect(tx, call.key))
    expect((await settleWithin(SOON_MS, retry)).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test.each([
    ['idleInTransactionMaxMs alone', {}],
    ['transactionMaxMs as well', { transactionMaxMs: 2_000 }],
  ])('waiting for the pool before the first query ends as well, bounded by %s', async (_, more) => {
    const pool = shop.database.pool({ max: 1 })
    const once = shop.open({ pool, store: { ...bounds, ...more } })
    const call = makeCall()
    const told = await settleWithin(
      SOON_MS,
      once
        .transaction(call, async (tx) => {
          await pool.query('SELECT 1')
          await leaveEffect(tx, call.key)
        })
        .then(
          ({ outcome }) => outcome,
          (error: unknown) => error,
        ),
    )
    if (told !== 'executed') expect(told).toBeInstanceOf(OnlyonceError)
    expect(await shop.countEffects(call.key)).toBe(told === 'executed' ? 1 : 0)
    expect((await settleWithin(SOON_MS, pool.query('SELECT 1 AS one'))).rows).toEqual([{ one: 1 }])
  })

  test('a function that is idle too long is told so, although it returns a value', async () => {
    const once = shop.open({ store: bounds })
    const call = makeCall()
    const error = await settleWithin(
      SOON_MS,
      catchError(
        once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          const { rows } = await tx.query('SELECT pg_backend_pid() AS pid')
          // Goes on only when the server has ended the connection, as after a slow call to somebody else.
          await waitForEnd(rows[0]!.pid)
          return 'fine'
        }),
      ),
    )
    expect(error).toMatchObject({ code: 'transaction_idle' })
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.explain(call)).state).toBe('retryable')
  })

  test('a protected transaction inside another one ends with a clear error', async () => {
    const pool = shop.database.pool({ max: 1 })
    const once = shop.open({
      pool,
      store: { pooler, idleInTransactionMaxMs: 10_000, connectionWaitMaxMs: 500 },
    })
    const [outer, inner] = [makeCall(), makeCall()]
    const error = await settleWithin(
      SOON_MS,
      catchError(
        once.transaction(outer, async (tx) => {
          await leaveEffect(tx, outer.key)
          return await once.transaction(inner, (innerTx) => leaveEffect(innerTx, inner.key))
        }),
      ),
    )
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(['pool_exhausted', 'transaction_idle']).toContain(error.code)
    expect(await shop.countEffects(outer.key)).toBe(0)
    expect(await shop.countEffects(inner.key)).toBe(0)
    expect((await settleWithin(SOON_MS, pool.query('SELECT 1 AS one'))).rows).toEqual([{ one: 1 }])
    expect(
      (
        await settleWithin(
          SOON_MS,
          once.transaction(outer, async () => 1),
        )
      ).outcome,
    ).toBe('executed')
  })

  test('a connection that somebody else keeps is pool_exhausted, and the function never runs', async () => {
    const pool = shop.database.pool({ max: 1 })
    const once = shop.open({ pool, store: { pooler, connectionWaitMaxMs: 300 } })
    await once.start()
    const kept = await pool.connect()
    let runs = 0
    const error = await settleWithin(SOON_MS, catchError(once.transaction(makeCall(), async () => ++runs)))
    expect(error).toMatchObject({ code: 'pool_exhausted', status: 503, retryable: true })
    expect(runs).toBe(0)
    kept.release()
    expect(
      (
        await settleWithin(
          SOON_MS,
          once.transaction(makeCall(), async () => ++runs),
        )
      ).outcome,
    ).toBe('executed')
    expect(pool.waitingCount).toBe(0)
  })
})

describe('what waits for itself', () => {
  test('the same key inside its own function ends within the bounds', async () => {
    const once = shop.open({
      store: { idleInTransactionMaxMs: 300, transactionMaxMs: 1_000 },
      deadlineMs: 3_000,
    })
    const call = makeCall()
    const error = await settleWithin(
      SOON_MS,
      catchError(
        once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          return await once.transaction(call, async () => 'inside')
        }),
      ),
    )
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(await shop.countEffects(call.key)).toBe(0)
  })

  test('a function that never ends gives its connection and its key back', async () => {
    const pool = shop.database.pool({ max: 1 })
    const once = shop.open({
      pool,
      store: { idleInTransactionMaxMs: 300, transactionMaxMs: 1_000 },
      deadlineMs: 3_000,
    })
    const call = makeCall()
    const error = await settleWithin(
      SOON_MS,
      catchError(
        once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          await new Promise(() => {})
        }),
      ),
    )
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(['transaction_idle', 'deadline_exceeded']).toContain(error.code)
    expect(await shop.countEffects(call.key)).toBe(0)
    expect(
      (
        await settleWithin(
          SOON_MS,
          once.transaction(call, async () => 1),
        )
      ).outcome,
    ).toBe('executed')
  })

  test('a call is not tried longer than its deadlineMs', async () => {
    const once = shop.open()
    const call = makeCall()
    const error = await settleWithin(
      SOON_MS,
      catchError(
        once.transaction({ ...call, deadlineMs: 500 }, async (tx) => {
          await leaveEffect(tx, call.key)
          await tx.query('SELECT pg_sleep(3600)')
        }),
      ),
    )
    expect(error).toMatchObject({ code: 'deadline_exceeded', status: 504 })
    expect(await shop.countEffects(call.key)).toBe(0)
  })

  test('a function that keeps its connection busy is ended by transactionMaxMs', async () => {
    const once = shop.open({ store: { transactionMaxMs: 500 }, deadlineMs: 3_000 })
    const call = makeCall()
    const error = await settleWithin(
      SOON_MS,
      catchError(
        once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          await tx.query('SELECT pg_sleep(3600)')
        }),
      ),
    )
    expect(error).toMatchObject({ code: 'deadline_exceeded', status: 504 })
    expect(await shop.countEffects(call.key)).toBe(0)
  })
})

async function waitForEnd(pid: number): Promise<void> {
  await waitUntil('the server has ended the connection', async () => {
    const { rows } = await shop.observer.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [pid])
    return rows.length === 0
  })
}
