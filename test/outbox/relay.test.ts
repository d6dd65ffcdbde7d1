import { beforeAll, describe, expect, it } from 'vitest'
import { type OutboxEvent, outbox, relay } from '../../src/index.ts'
import { beginCaller, openShop, type Shop } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { emitAlone, expectOrder, runDry } from './office.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

describe('an event', () => {
  it('is delivered when its transaction commits, and never was when it does not', async () => {
    const once = shop.open()
    await once.start()
    const { emit } = outbox(once)
    const got: OutboxEvent[] = []
    const worker = relay(once, { destinations: { commits: async (events) => void got.push(...events) } })
    await worker.runOnce()
    const event = { account: 'acct_1', type: 'payment.captured', payload: { id: 7, at: new Date(0) } }
    const undone = await beginCaller(shop)
    await emit(undone, { ...event, aggregate: 'payment:7' })
    await runDry(worker)
    expect(got).toEqual([])
    await undone.query('ROLLBACK')
    await runDry(worker)
    expect(got).toEqual([])
    const done = await beginCaller(shop)
    const ids = await emit(done, [event, { ...event, aggregate: 'payment:7' }])
    await done.query('COMMIT')
    await runDry(worker)
    expect(got.map(({ id }) => id).sort()).toEqual([...ids].sort())
    expect(got.find(({ aggregate }) => aggregate !== null)).toEqual({
      id: ids[1],
      account: 'acct_1',
      type: 'payment.captured',
      aggregate: 'payment:7',
      sequence: 1,
      payload: { id: 7, at: '1970-01-01T00:00:00.000Z' },
      emitted_at: expect.any(Number),
    })
  })
})

it('delivers many quickly', async () => {
  const once = shop.open({ observe: makeRecorder() })
  await once.start()
  const { emit } = outbox(once)
  const got: OutboxEvent[] = []
  const worker = relay(once, { destinations: { many: async (events) => void got.push(...events) } })
  await worker.runOnce()
  const start = performance.now()
  const pool = shop.database.pool({ max: 1 })
  for (let i = 0; i < 20; i += 1) {
    await emitAlone(pool, emit, Array.from({ length: 500 }, (_, n) => ({ account: 'acct_2', type: 't', payload: { i, n }, aggregate: `a:${n % 50}` })))
  }
  const mid = performance.now()
  await runDry(worker)
  console.log('emit', mid - start, 'relay', performance.now() - mid, got.length)
  expectOrder(got)
  expect(got.length).toBe(10_000)
})
