import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  catchError,
  leaveEffect,
  makeCall,
  makeGate,
  openProxy,
  openShop,
  POOLERS,
  type Shop,
} from './shop.ts'

const DAY_MS = 86_400_000
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

afterEach(() => void vi.useRealTimers())

/** Sets the clock of this process, and of nothing else. */
function shiftClock(byMs: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + byMs })
}

describe.each(POOLERS)('a handler in trouble, with pooler %s', (pooler) => {
  test('is not robbed by a process whose clock is ahead', async () => {
    const [one, other] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = makeCall()
    const gate = makeGate()
    const first = one.execute(call, async () => {
      await gate.pass()
      return 'done'
    })
    await gate.reached
    shiftClock(DAY_MS)
    expect((await other.execute(call, async () => 'robbed')).outcome).toBe('in_progress')
    gate.open()
    expect(await first).toEqual({ outcome: 'executed', value: 'done' })
  })

  test('holds no key for longer where the clock is behind, or was when it was claimed', async () => {
    const [one, other] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = { ...makeCall(), rerunnable: true }
    shiftClock(DAY_MS)
    const gate = makeGate()
    const first = catchError(
      one.execute(call, async () => {
        await gate.pass()
      }),
    )
    await gate.reached
    vi.useRealTimers()
    shiftClock(-DAY_MS)
    // What a lease that has run out looks like, by the only clock that counts.
    await shop.observer.query('UPDATE onlyonce.records SET lease_until = clock_timestamp() WHERE key = $1', [
      call.key,
    ])
    expect(await other.execute(call, async () => 'next')).toEqual({ outcome: 'executed', value: 'next' })
    gate.open()
    expect(await first).toMatchObject({ code: 'lease_lost' })
  })

  test('runs nothing when its claim cannot be written', async () => {
    const { proxy, pool } = await openProxy(shop)
    const bounds = { pooler, statementMaxMs: 300, connectionWaitMaxMs: 300 }
    const once = shop.open({ pool, store: bounds, deadlineMs: 500 })
    await once.start()
    const call = makeCall()
    proxy.setFault({ kind: 'reset' })
    const error = await catchError(once.execute(call, async () => leaveEffect(shop.observer, call.key)))
    expect(error).toMatchObject({ status: 503, retryable: true })
    expect(['store_unavailable', 'pool_exhausted']).toContain(error.code)
    proxy.setFault(null)
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await shop.open().explain(call)).state).toBe('none')
  })
})
