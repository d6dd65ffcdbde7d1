/** What is true only behind PgBouncer. What has to be true there as well is in the other files of this run. */
import type pg from 'pg'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { run } from '../cli/under-test.ts'
import {
  catchError,
  leaveEffect,
  makeCall,
  openShop,
  SECRET,
  type Shop,
  waitUntil,
} from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { addressWithin, withClient } from '../setup/client.ts'
import { CONSOLE, SERVER_CONNECTIONS, startPgBouncer } from '../setup/pgbouncer.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

describe('this run', () => {
  it('has PgBouncer 1.18 in transaction mode between the product and the server', async () => {
    const read = (command: string) =>
      withClient(addressWithin(shop.database.url, CONSOLE), async (console) => {
        return (await console.query(command)).rows
      })
    expect(await read('SHOW VERSION')).toEqual([{ version: expect.stringMatching(/^PgBouncer 1\.18\./) }])
    await shop.open().transaction(makeCall(), async () => 1)
    const pools = await read('SHOW POOLS')
    expect(pools.find(({ database }) => database === shop.database.name)).toMatchObject({
      pool_mode: 'transaction',
    })
    expect(new URL(shop.database.url).port).not.toBe(new URL(inject('adminUrl')).port)
  })

  it('is found by doctor, and a command that was not told of it says what to give', async () => {
    const env = { DATABASE_URL: shop.database.url }
    const { json } = await run(['doctor', '--pooler', 'transaction', '--json'], { env })
    const found = json.findings.find(({ about }: { about: string }) => about === 'pooler')
    expect(found).toMatchObject({ level: 'ok', found: 'A pooler is in between, and its mode was told.' })
    expect((await run(['list', '--pooler', 'transaction'], { env })).code).toBe(0)
    const untold = await run(['list'], { env })
    expect([untold.code, untold.stderr]).toEqual([2, expect.stringContaining('give --pooler transaction')])
  })

  it('serves two hundred callers of fifty keys over two connections, and each key has one effect', async () => {
    const doors = [shop.open(), shop.open()]
    const calls = Array.from({ length: 50 }, () => makeCall())
    let connectionsMax = 0
    let running = true
    const watching = (async () => {
      while (running) connectionsMax = Math.max(connectionsMax, await countProductConnections())
    })()
    const results = await Promise.all(
      calls.flatMap((call) =>
        [0, 1, 2, 3].map((n) =>
          doors[n % 2]!.transaction(call, async (tx) => {
            await leaveEffect(tx, call.key)
            return call.key
          }),
        ),
      ),
    )
    running = false
    await watching
    results.forEach((result, i) => {
      if (result.outcome !== 'in_progress')
        expect(result).toMatchObject({ value: calls[Math.floor(i / 4)]!.key })
    })
    for (const { key } of calls) expect(await shop.countEffects(key)).toBe(1)
    expect(connectionsMax).toBe(SERVER_CONNECTIONS)
  })
})

async function countProductConnections(): Promise<number> {
  const { rows } = await shop.observer.query(
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
  )
  return rows[0].count
}

describe('behind PgBouncer', () => {
  it('keeps its bounds on waiting to its own transactions', async () => {
    const pool = shop.database.pool({ max: 4 })
    const once = shop.open({ pool, store: { lockWaitMaxMs: 1_234 } })
    const inside = await once.transaction(makeCall(), async (tx) => {
      return (await tx.query('SHOW lock_timeout')).rows[0]
    })
    expect(inside).toMatchObject({ value: { lock_timeout: '1234ms' } })
    for (let i = 0; i < 20; i += 1) {
      expect((await pool.query('SHOW lock_timeout')).rows[0]).toEqual({ lock_timeout: '0' })
    }
  })

  it('takes effect once or says what to do when it was not told of the pooler', async () => {
    const once = shop.open({ poolOptions: { max: 16 }, store: { pooler: 'none' } })
    const calls = Array.from({ length: 120 }, () => ({ ...makeCall(), deadlineMs: 20_000 }))
    const settled = await Promise.allSettled(
      calls.map((call) => once.transaction(call, (tx) => leaveEffect(tx, call.key))),
    )
    // Whether a call meets a session that knows its statements is chance; either way the truth is told.
    for (const [i, end] of settled.entries()) {
      const told = end.status === 'fulfilled' ? end.value.outcome : end.reason.code
      expect(['executed', 'statement_not_prepared']).toContain(told)
      expect(await shop.countEffects(calls[i]!.key)).toBe(told === 'executed' ? 1 : 0)
    }
  })
})

/** What a pooler does with those who come third: they wait, and somebody has to give up. */
describe('when all connections of the pooler are taken', () => {
  /** Takes them from those who come by this address, until it is called. */
  async function takeAll(pool: pg.Pool): Promise<() => Promise<void>> {
    const taken: pg.PoolClient[] = []
    for (let i = 0; i < SERVER_CONNECTIONS; i += 1) {
      const client = await pool.connect()
      cleanUpLater(async () => client.release(true))
      await client.query('BEGIN')
      taken.push(client)
    }
    return async () => {
      for (const client of taken) await client.query('COMMIT')
    }
  }

  it('a call gives up within its own bounds, and nothing runs', async () => {
    const once = shop.open({ store: { statementMaxMs: 500 } })
    await once.start()
    const giveBack = await takeAll(shop.database.pool({ max: SERVER_CONNECTIONS }))
    const call = makeCall()
    let runs = 0
    const error = await catchError(once.transaction(call, async () => ++runs))
    expect(error).toMatchObject({ code: 'store_unavailable', status: 503, retryable: true })
    expect(runs).toBe(0)
    await giveBack()
    expect(await once.transaction(call, async () => ++runs)).toEqual({ outcome: 'executed', value: 1 })
  })

  it('a transaction that was given up has no effect, although the pooler still has its statements', async () => {
    const once = shop.open({ store: { statementMaxMs: 500 } })
    await once.start()
    const others = shop.database.pool({ max: SERVER_CONNECTIONS })
    let giveBack = async () => {}
    const call = makeCall()
    const error = await catchError(
      once.transaction({ ...call, deadlineMs: 1_000 }, async (tx) => {
        giveBack = await takeAll(others)
        await leaveEffect(tx, call.key)
      }),
    )
    expect(error).toMatchObject({ code: 'deadline_exceeded', status: 504 })
    await giveBack()
    const retry = await once.transaction(call, async (tx) => leaveEffect(tx, call.key))
    expect(retry.outcome).toBe('executed')
    // Nobody is left who could still do something.
    await waitUntil('all are idle', async () => (await countBusy()) === 0)
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  it('the pooler may give up first, and nothing runs', async () => {
    const { serverUrl } = shop.database
    const bouncer = await startPgBouncer(serverUrl, { query_wait_timeout: '1' })
    cleanUpLater(() => bouncer.stop())
    const pool = shop.database.pool({ connectionString: bouncer.url(serverUrl), max: 4 })
    const once = shop.open({ pool })
    await once.start()
    const giveBack = await takeAll(pool)
    const call = makeCall()
    let runs = 0
    const error = await catchError(once.transaction(call, async () => ++runs))
    expect(error).toMatchObject({
      code: 'store_unavailable',
      cause: { code: '08P01', message: 'query_wait_timeout' },
    })
    expect(runs).toBe(0)
    await giveBack()
    expect(await once.transaction(call, async () => ++runs)).toEqual({ outcome: 'executed', value: 1 })
  })
})

async function countBusy(): Promise<number> {
  const { rows } = await shop.observer.query(
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
  )
  return rows[0].count
}

describe('a door that was made from a connection string', () => {
  it('is turned away when it was not told of the pooler, and says why', async () => {
    const once = onlyonce({ store: postgres({ connectionString: shop.database.url }), secret: SECRET })
    cleanUpLater(() => once.close())
    expect(await catchError(once.start())).toMatchObject({
      code: 'store_unavailable',
      cause: { message: expect.stringContaining('unsupported startup parameter') },
    })
  })

  it('works when it was', async () => {
    const store = postgres({ connectionString: shop.database.url, pooler: 'transaction' })
    const once = onlyonce({ store, secret: SECRET })
    cleanUpLater(() => once.close())
    const call = makeCall()
    expect(await once.transaction(call, async () => 1)).toEqual({ outcome: 'executed', value: 1 })
    expect(await once.transaction(call, async () => 2)).toEqual({ outcome: 'replayed', value: 1 })
  })
})
