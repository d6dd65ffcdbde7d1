import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { OnlyonceError, onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { startDurableServer } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import {
  catchError,
  leaveEffect,
  makeCall,
  openProxy,
  openShop,
  PLACES,
  POOLERS,
  SECRET,
  settleWithin,
} from './shop.ts'

const SOON_MS = 30_000

const WAYS = POOLERS.flatMap((pooler) => PLACES.map((place) => ({ pooler, place })))

describe.each(WAYS)('a database that cannot be reached $place, with pooler $pooler', ({ pooler, place }) => {
  test('from the start: nothing runs; when it is there, the same door goes on', async () => {
    const shop = await openShop()
    const { proxy, pool, heal } = await openProxy(shop, { place })
    proxy.setFault({ kind: 'refuse' })
    const once = shop.open({ pool, store: { pooler, connectionWaitMaxMs: 1_000 } })
    const call = makeCall()
    let runs = 0
    const error = await settleWithin(SOON_MS, catchError(once.transaction(call, async () => ++runs)))
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(error).toMatchObject({ code: 'store_unavailable', status: 503, retryable: true })
    expect(await settleWithin(SOON_MS, catchError(once.explain(call)))).toMatchObject({
      code: 'store_unavailable',
    })
    expect(await settleWithin(SOON_MS, catchError(once.start()))).toMatchObject({
      code: 'store_unavailable',
    })
    expect(runs).toBe(0)
    await heal()
    expect(await once.transaction(call, async () => ++runs)).toEqual({ outcome: 'executed', value: 1 })
  })

  test('later: nothing runs; when it is back, the same door goes on', async () => {
    const shop = await openShop()
    const { proxy, pool, heal } = await openProxy(shop, { place })
    const once = shop.open({ pool, store: { pooler, statementMaxMs: 2_000 } })
    const [done, call] = [makeCall(), makeCall()]
    await once.transaction(done, async () => 'done')
    // All that are open are cut, and new ones are turned away.
    proxy.setFault({ kind: 'reset' })
    await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
    proxy.setFault({ kind: 'refuse' })
    let runs = 0
    for (const request of [done, call]) {
      const error = await settleWithin(SOON_MS, catchError(once.transaction(request, async () => ++runs)))
      expect(error).toMatchObject({ code: 'store_unavailable', status: 503 })
    }
    expect(runs).toBe(0)
    await heal()
    expect(await once.transaction(done, async () => '')).toEqual({ outcome: 'replayed', value: 'done' })
    expect((await once.transaction(call, async () => ++runs)).outcome).toBe('executed')
  })

  test('a network that swallows everything does not hold a caller for ever, and nothing runs', async () => {
    const shop = await openShop()
    const { proxy, pool, heal } = await openProxy(shop, { place })
    const once = shop.open({
      pool,
      store: { pooler, statementMaxMs: 500, connectionWaitMaxMs: 500 },
      deadlineMs: 5_000,
    })
    await once.start()
    proxy.setFault({ kind: 'black_hole' })
    let runs = 0
    const errors = await settleWithin(
      SOON_MS,
      Promise.all(
        Array.from({ length: 10 }, () => catchError(once.transaction(makeCall(), async () => ++runs))),
      ),
    )
    for (const error of errors) {
      expect(error).toBeInstanceOf(OnlyonceError)
      expect(['store_unavailable', 'pool_exhausted']).toContain(error.code)
    }
    expect(runs).toBe(0)
    await heal()
    // What fell silent stays silent; the door has to let go of it by itself.
    const again = once.transaction(makeCall(), async () => ++runs)
    expect((await settleWithin(SOON_MS, again)).outcome).toBe('executed')
  })

  test('the connection breaks inside the function: it is undone, and runs again or says so', async () => {
    const shop = await openShop()
    const { proxy, pool } = await openProxy(shop, { place })
    const once = shop.open({ pool, store: { pooler } })
    const call = makeCall()
    let runs = 0
    const result = await settleWithin(
      SOON_MS,
      once.transaction(call, async (tx) => {
        runs += 1
        await leaveEffect(tx, call.key)
        if (runs === 1) {
          proxy.setFault({ kind: 'reset' })
          await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
          proxy.setFault(null)
        }
        await leaveEffect(tx, call.key)
        return runs
      }),
    )
    expect(result).toEqual({ outcome: 'executed', value: 2 })
    expect(await shop.countEffects(call.key)).toBe(2)
  })
})

test('a server that is killed and comes back: what was told is still true', async () => {
  const server = await startDurableServer()
  const pool = new pg.Pool({ connectionString: server.url, max: 4 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const once = onlyonce({
    store: postgres({ pool, pooler: POOLER, statementMaxMs: 2_000 }),
    secret: SECRET,
    deadlineMs: 10_000,
  })
  cleanUpLater(async () => {
    await once.close({ maxMs: 1_000 })
    await pool.end()
  })
  const [done, call] = [makeCall(), makeCall()]
  await once.transaction(done, async () => 'done')
  await server.kill()
  let runs = 0
  const error = await settleWithin(SOON_MS, catchError(once.transaction(call, async () => ++runs)))
  expect(error).toMatchObject({ code: 'store_unavailable' })
  expect(runs).toBe(0)
  await server.restart()
  expect(await once.transaction(done, async () => '')).toEqual({ outcome: 'replayed', value: 'done' })
  expect((await once.transaction(call, async () => ++runs)).outcome).toBe('executed')
})
