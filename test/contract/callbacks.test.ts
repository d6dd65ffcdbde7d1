import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { rateLimit } from '../../src/rate-limits/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { catchError, leaveEffect, makeCall, openShop, waitUntil } from './shop.ts'

const shop = await openShop()

/** As a user makes it: without a listener of any kind. */
function lentPool(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: shop.database.url, ...options })
  cleanUpLater(() => pool.end())
  return pool
}

/** A store with bounds that are too short for a connection to be made: the only one that the pool has is there already. */
async function openOn(pool: pg.Pool, connectionWaitMaxMs: number) {
  await waitUntil('the pool has a connection', () =>
    pool.query('SELECT 1').then(
      () => true,
      () => false,
    ),
  )
  const once = shop.open({ pool, store: { connectionWaitMaxMs } })
  await once.start()
  return once
}

/** What the pool's callers throw when it calls them back. In a timer or on a socket, that would end the process. */
function thrownInCallbacks(pool: pg.Pool): { readonly called: () => number; readonly thrown: unknown[] } {
  const thrown: unknown[] = []
  let called = 0
  const connect = pool.connect.bind(pool) as (callback: (...given: unknown[]) => void) => void
  const watched = (callback: (...given: unknown[]) => void) =>
    connect((...given) => {
      try {
        callback(...given)
      } catch (error) {
        thrown.push(error)
      }
      called += 1
    })
  pool.connect = watched as pg.Pool['connect']
  return { called: () => called, thrown }
}

describe('a caller that waited in vain for a connection', () => {
  test.each([
    ['as long as the store', 200],
    ['longer than the store', 400],
  ])('throws nothing when the pool, which waits %s, gives up too', async (_, connectionTimeoutMillis) => {
    const pool = lentPool({ max: 1, connectionTimeoutMillis })
    const once = await openOn(pool, 200)
    const ready = await pool.connect()
    const { called, thrown } = thrownInCallbacks(pool)
    const call = makeCall()
    const error = await catchError(once.transaction(call, (tx) => leaveEffect(tx, call.key)))
    expect(error).toMatchObject({ status: 503 })
    await waitUntil('the pool has called back', async () => called() > 0 && pool.waitingCount === 0)
    expect(thrown).toEqual([])
    ready.release()
    expect(await once.transaction(call, (tx) => leaveEffect(tx, call.key))).toMatchObject({
      outcome: 'executed',
    })
  })

  test('gives back a connection that comes after its time', async () => {
    const pool = lentPool({ max: 1 })
    const once = await openOn(pool, 100)
    const held = await pool.connect()
    const { called, thrown } = thrownInCallbacks(pool)
    const error = await catchError(once.transaction(makeCall(), async () => null))
    expect(error).toMatchObject({ code: 'pool_exhausted' })
    held.release()
    await waitUntil('the pool has called back', async () => called() > 0)
    expect(thrown).toEqual([])
    await waitUntil('nobody holds a connection', async () => pool.idleCount === pool.totalCount)
  })
})

describe('a pool without a listener of its own', () => {
  test.each([
    ['a store', (pool: pg.Pool) => shop.open({ pool }).start()],
    ['a limit', (pool: pg.Pool) => rateLimit({ pool, name: 'heard', points: 1, perMs: 1_000 }).start()],
  ])('may lose an idle connection and one that is lent, after it was given to %s', async (_, give) => {
    const pool = lentPool({ max: 2 })
    await give(pool)
    const client = await pool.connect()
    // Without a listener, emit() throws what it is given.
    client.emit('error', new Error('lost while lent'))
    client.release()
    pool.emit('error', new Error('lost while idle'), client)
  })
})
