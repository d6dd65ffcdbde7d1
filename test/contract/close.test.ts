import { beforeAll, describe, expect, test } from 'vitest'
import { onlyonce, operation, reply } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { addressWithin, withClient } from '../setup/client.ts'
import { CONSOLE } from '../setup/pgbouncer.ts'
import { behindPooler, POOLER } from '../setup/pooler.ts'
import { makeRecorder } from '../setup/recorder.ts'
import {
  beginCaller,
  catchError,
  leaveEffect,
  makeBarrier,
  makeCall,
  makeGate,
  openProxy,
  openShop,
  SECRET,
  type Shop,
  settleWithin,
  waitUntil,
} from './shop.ts'

const SOON_MS = 20_000
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

describe('close', () => {
  test('refuses new work and waits for what runs', async () => {
    const once = shop.open()
    const [running, late] = [makeCall(), makeCall()]
    const gate = makeGate()
    const work = once.transaction(running, async (tx) => {
      await leaveEffect(tx, running.key)
      await gate.pass()
      await leaveEffect(tx, running.key)
      return 'done'
    })
    await gate.reached
    let isClosed = false
    const closing = once.close().then(() => {
      isClosed = true
    })
    let runs = 0
    const error = await catchError(once.transaction(late, async () => ++runs))
    expect(error).toMatchObject({ code: 'closed', status: 503, retryable: true })
    const client = await beginCaller(shop)
    expect(await catchError(once.within(client, late, async () => ++runs))).toMatchObject({ code: 'closed' })
    expect(runs).toBe(0)
    expect(isClosed).toBe(false)
    gate.open()
    expect(await work).toEqual({ outcome: 'executed', value: 'done' })
    await settleWithin(SOON_MS, closing)
    expect(await shop.countEffects(running.key)).toBe(2)
  })

  test('waits no longer than it was told to', async () => {
    const once = shop.open()
    const call = makeCall()
    const gate = makeGate()
    const work = once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await gate.pass()
    })
    await gate.reached
    await settleWithin(SOON_MS, once.close({ maxMs: 100 }))
    gate.open()
    // Whatever becomes of it, what is told is what is there.
    const told = await settleWithin(
      SOON_MS,
      work.then(
        ({ outcome }) => outcome,
        () => 'failed',
      ),
    )
    expect(await shop.countEffects(call.key)).toBe(told === 'executed' ? 1 : 0)
  })

  test('tells how much it cut off, by kind', async () => {
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const gate = makeGate()
    const all = makeBarrier(4)
    const work = () => all().then(() => gate.pass())
    const held = operation('close.held', async (op) => {
      await op.transaction('first', (tx) => leaveEffect(tx, 'cut off'))
      await work()
      return reply(200, {})
    })
    const { account, key } = makeCall()
    const ends = [
      once.transaction(makeCall(), async (tx) => {
        await leaveEffect(tx, 'cut off')
        await work()
      }),
      once.execute(makeCall(), async () => void (await work())),
      once.execute(makeCall(), async () => void (await work())),
      once.run(held, { account, key, input: {} }),
    ]
    await gate.reached
    await settleWithin(SOON_MS, once.close({ maxMs: 200 }))
    expect(heard.of('cut_off')).toEqual([{ signal: 'cut_off', transactions: 1, handlers: 2, operations: 1 }])
    gate.open()
    await settleWithin(SOON_MS, Promise.allSettled(ends))
    const quiet = shop.open({ observe: heard })
    await quiet.transaction(makeCall(), (tx) => leaveEffect(tx, 'quiet'))
    await quiet.close()
    expect(heard.of('cut_off')).toHaveLength(1)
  })

  test('warns of what it cut off where nothing observes, and of nothing else', async () => {
    const warnings: string[] = []
    const note = ({ name, message }: Error) => {
      if (name === 'OnlyonceCutOffWarning') warnings.push(message)
    }
    process.on('warning', note)
    cleanUpLater(async () => void process.off('warning', note))
    const quiet = shop.open()
    await quiet.execute(makeCall(), async () => 1)
    await quiet.close()
    const once = shop.open()
    const gate = makeGate()
    const running = once.execute(makeCall(), () => gate.pass())
    await gate.reached
    await settleWithin(SOON_MS, once.close({ maxMs: 1 }))
    await waitUntil('it is told', async () => warnings.length > 0)
    expect(warnings).toEqual([
      'close() waited no longer and cut off work. Transactions: 0, handlers: 1, operations: 0.',
    ])
    gate.open()
    await settleWithin(SOON_MS, running)
  })

  test('may be called twice, and before anything was done', async () => {
    const once = shop.open()
    await settleWithin(SOON_MS, Promise.all([once.close(), once.close()]))
    await once.close()
    expect(await catchError(once.transaction(makeCall(), async () => 1))).toMatchObject({ code: 'closed' })
  })

  test('leaves the pool of the user as it is', async () => {
    const pool = shop.database.pool({ max: 2 })
    const once = shop.open({ pool })
    await once.transaction(makeCall(), async () => 1)
    await once.close()
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    expect({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }).toEqual({
      total: pool.totalCount,
      idle: pool.totalCount,
      waiting: 0,
    })
  })

  test('ends the pool that was made from a connection string', async () => {
    const applicationName = 'contract-close'
    const url = new URL(shop.database.url)
    url.searchParams.set('application_name', applicationName)
    const store = postgres({ connectionString: url.href, poolSize: 2, pooler: POOLER })
    const once = onlyonce({ store, secret: SECRET })
    await once.transaction(makeCall(), async () => 1)
    const count = async () => {
      const clients = behindPooler('the server does not see clients')
        ? await withClient(addressWithin(shop.database.url, CONSOLE), (client) =>
            client.query('SHOW CLIENTS'),
          )
        : await shop.observer.query('SELECT application_name FROM pg_stat_activity')
      return clients.rows.filter((client) => client.application_name === applicationName).length
    }
    expect(await count()).toBeGreaterThan(0)
    await settleWithin(SOON_MS, once.close())
    await waitUntil('its connections are gone', async () => (await count()) === 0)
  })

  test('ends although the database is away', async () => {
    const { proxy, pool } = await openProxy(shop)
    proxy.setFault({ kind: 'refuse' })
    const once = shop.open({ pool })
    await catchError(once.transaction(makeCall(), async () => 1))
    await settleWithin(SOON_MS, once.close())
  })
})
