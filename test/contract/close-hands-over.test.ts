import { beforeAll, describe, expect, test } from 'vitest'
import {
  catchError,
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
    proxy.setFault({ kind: 'delay', delayMs: 500, direction: 'to_client' })
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
