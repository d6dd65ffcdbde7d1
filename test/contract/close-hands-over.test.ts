import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { operation } from '../../src/index.ts'
import {
  beginOutside,
  type Call,
  catchError,
  leaveEffect,
  makeCall,
  makeGate,
  openProxy,
  openShop,
  POOLERS,
  type Shop,
  settleWithin,
  waitUntil,
} from './shop.ts'

const SOON_MS = 20_000
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

describe.each(POOLERS)('close, with pooler %s', (pooler) => {
  test('lets nobody in who was waiting for the start', async () => {
    const { proxy, pool } = await openProxy(shop)
    const once = shop.open({ pool, store: { pooler } })
    proxy.setFault({ kind: 'delay', delayMs: 100, direction: 'to_client' })
    let ran = false
    const late = catchError(
      once.execute(makeCall(), async () => {
        ran = true
      }),
    )
    await once.close()
    expect(await late).toMatchObject({ code: 'closed' })
    expect(ran).toBe(false)
  })

  test('gives a claim back whose answer comes after it', async () => {
    const { proxy, pool } = await openProxy(shop)
    const once = shop.open({ pool, store: { pooler } })
    const other = shop.open({ store: { pooler } })
    await once.start()
    const call = makeCall()
    // Longer than it takes to see the claim on a busy machine.
    proxy.setFault({ kind: 'delay', delayMs: 1_500, direction: 'to_client' })
    let ran = false
    const late = catchError(
      once.execute(call, async () => {
        ran = true
      }),
    )
    await waitUntil('it is claimed', async () => (await other.explain(call)).state === 'in_progress')
    await once.close({ maxMs: 1 })
    expect(await settleWithin(SOON_MS, late)).toMatchObject({ code: 'closed' })
    expect(ran).toBe(false)
    expect((await other.execute(call, async () => 1)).outcome).toBe('executed')
  })

  test('hands leases over for good: no sign of life takes them back', async () => {
    const once = shop.open({ store: { pooler } })
    const other = shop.open({ store: { pooler } })
    const call = { ...makeCall(), leaseMs: 300 }
    const gate = makeGate()
    const first = once.execute(call, () => gate.pass())
    await gate.reached
    await once.close({ maxMs: 1 })
    const { leaseUntil } = await other.explain(call)
    // Longer than the time between two signs of life, as the database's clock tells.
    await shop.observer.query('SELECT pg_sleep(0.2)')
    expect((await other.explain(call)).leaseUntil).toBe(leaseUntil)
    expect((await other.execute(call, async () => 1)).outcome).toBe('unknown')
    gate.open()
    // Nobody has decided meanwhile, so its own word still counts.
    expect(await first).toMatchObject({ outcome: 'executed' })
  })

  test('waits for a result whose caller could not wait for it', async () => {
    const { proxy, pool } = await openProxy(shop)
    const once = shop.open({ pool, store: { pooler, statementMaxMs: 500 } })
    const other = shop.open({ store: { pooler } })
    await once.start()
    const call = { ...makeCall(), deadlineMs: 50 }
    const told = await catchError(
      once.execute(call, async () => {
        // The one connection there is falls silent, and the result is saved over the next.
        proxy.setFault({ kind: 'black_hole' })
        return 'done'
      }),
    )
    expect(told).toMatchObject({ code: 'outcome_unknown' })
    proxy.setFault(null)
    await once.close()
    expect(await other.execute(call, async () => 'twice')).toEqual({ outcome: 'replayed', value: 'done' })
  })

  test('may be given more time than a timer can wait', async () => {
    const once = shop.open({ store: { pooler } })
    const gate = makeGate()
    const call = once.execute(makeCall(), async () => {
      await gate.pass()
      return 'done'
    })
    await gate.reached
    const closed = once.close({ maxMs: 30 * 86_400_000 })
    let isClosed = false
    void closed.then(() => {
      isClosed = true
    })
    await shop.observer.query('SELECT pg_sleep(0.1)')
    expect(isClosed).toBe(false)
    gate.open()
    await closed
    expect(await call).toEqual({ outcome: 'executed', value: 'done' })
  })
})

describe('close, and signs of life', () => {
  /** Signs of life every 200 ms. */
  const SHORT = { leaseMs: 600, inProgressMaxMs: 1_500 }

  test('waits for the last one of an operation whose time is over', async () => {
    const once = shop.open()
    const { account, key, input } = makeCall()
    const gate = makeGate()
    const held = operation('close.held', async (op) => {
      await op.transaction('first', (tx) => leaveEffect(tx, key))
      await gate.pass()
    })
    const told = catchError(once.run(held, { account, key, input, ...SHORT }))
    await gate.reached
    const outside = await beginOutside(shop)
    await lockRecord(outside, { account, operation: 'close.held', key })
    await shop.waitForWaiters(1)
    expect(await settleWithin(SOON_MS, told)).toMatchObject({ code: 'lease_lost' })
    await expectClosedAfter(once, () => outside.query('COMMIT'))
    gate.open()
  })

  test('waits until the record says that the time of a handler is over, which comes after the last one', async () => {
    const once = shop.open()
    const other = shop.open()
    const call = makeCall()
    const gate = makeGate()
    const told = catchError(once.execute({ ...call, ...SHORT }, () => gate.pass()))
    await gate.reached
    const [first, second] = [await beginOutside(shop), await beginOutside(shop)]
    await lockRecord(first, call)
    await shop.waitForWaiters(1)
    expect(await settleWithin(SOON_MS, told)).toMatchObject({ code: 'outcome_unknown' })
    // Locks of tables are given in turn: after the signs of life that wait already, and before what is written behind them.
    const locked = second.query('LOCK TABLE onlyonce.records IN EXCLUSIVE MODE')
    await waitUntil('the table is asked for', async () => {
      const { rows } = await shop.observer.query(
        `SELECT FROM pg_locks WHERE relation = 'onlyonce.records'::regclass AND mode = 'ExclusiveLock'`,
      )
      return rows.length === 1
    })
    await first.query('COMMIT')
    await locked
    await expectClosedAfter(once, () => second.query('COMMIT'))
    expect((await other.explain(call)).state).toBe('unknown')
    gate.open()
  })

  test('does not wait for one beyond its own time', async () => {
    const once = shop.open()
    await once.start()
    const call = makeCall()
    const gate = makeGate()
    const told = catchError(once.execute({ ...call, ...SHORT }, () => gate.pass()))
    await gate.reached
    const outside = await beginOutside(shop)
    await lockRecord(outside, call)
    await shop.waitForWaiters(1)
    expect(await settleWithin(SOON_MS, told)).toMatchObject({ code: 'outcome_unknown' })
    // The lock is held all the time.
    await settleWithin(SOON_MS, once.close({ maxMs: 50 }))
    await outside.query('ROLLBACK')
    gate.open()
  })

  async function lockRecord(
    outside: PoolClient,
    { account, operation, key }: Pick<Call, 'account' | 'operation' | 'key'>,
  ): Promise<void> {
    const where = 'account = $1 AND operation = $2 AND key = $3'
    await outside.query(`SELECT FROM onlyonce.records WHERE ${where} FOR UPDATE`, [account, operation, key])
  }

  async function expectClosedAfter(once: ReturnType<Shop['open']>, unlock: () => Promise<unknown>) {
    const events: string[] = []
    const closed = once.close().then(() => void events.push('closed'))
    // Time for a close that does not wait, as the database's clock tells.
    await shop.observer.query('SELECT pg_sleep(0.3)')
    events.push('unlocked')
    await unlock()
    await settleWithin(SOON_MS, closed)
    expect(events).toEqual(['unlocked', 'closed'])
  }
})
