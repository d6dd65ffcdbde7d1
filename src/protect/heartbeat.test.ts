import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Owned, Store } from '../store/contract.ts'
import { memory } from '../store/memory/index.ts'
import { Heartbeat } from './heartbeat.ts'
import { Running } from './running.ts'

const DAY_MS = 86_400_000
const owned: Owned = { id: { account: 'a', operation: 'o', key: 'k' }, fence: 1, attemptId: 'a' }

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A store that only counts signs of life, and answers as it is told to. */
function counting(extend: () => Promise<void>) {
  let beats = 0
  const store: Store<unknown> = Object.assign(Object.create(memory()), {
    extend: () => {
      beats += 1
      return extend()
    },
  })
  return { store, beats: () => beats }
}

describe('signs of life', () => {
  it('come at a third of the lease', async () => {
    const { store, beats } = counting(async () => {})
    const heartbeat = new Heartbeat(store, owned, { leaseMs: 300, inProgressMaxMs: DAY_MS }, () => {})
    await vi.advanceTimersByTimeAsync(350)
    expect(beats()).toBe(3)
    heartbeat.stop()
    await vi.advanceTimersByTimeAsync(350)
    expect(beats()).toBe(3)
  })

  it('are not given all the time where the lease is longer than a timer can wait', async () => {
    const { store, beats } = counting(async () => {})
    const bounds = { leaseMs: 90 * DAY_MS, inProgressMaxMs: 900 * DAY_MS }
    const heartbeat = new Heartbeat(store, owned, bounds, () => {})
    await vi.advanceTimersByTimeAsync(60_000)
    expect(beats()).toBe(0)
    heartbeat.stop()
  })

  it('end with the time for the work: no lease reaches beyond it, and the owner is told once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const untilMs: number[] = []
    const store: Store<unknown> = Object.assign(Object.create(memory()), {
      extend: async (_: Owned, leaseMs: number) => void untilMs.push(performance.now() + leaseMs),
    })
    const beganMs = performance.now()
    const told = vi.fn()
    const heartbeat = new Heartbeat(store, owned, { leaseMs: 150, inProgressMaxMs: 400 }, () => {})
    heartbeat.onLost(told)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(untilMs.length).toBeGreaterThan(5)
    expect(Math.max(...untilMs)).toBeLessThanOrEqual(beganMs + 401)
    expect(told).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'outcome_unknown' }))
  })

  it('go on beside one that gets no answer, up to a few', async () => {
    const { store, beats } = counting(() => new Promise(() => {}))
    const heartbeat = new Heartbeat(store, owned, { leaseMs: 300, inProgressMaxMs: DAY_MS }, () => {})
    await vi.advanceTimersByTimeAsync(2_000)
    expect(beats()).toBe(4)
    heartbeat.stop()
  })

  it.each([
    ['rejected', () => Promise.reject(new Error('away'))],
    [
      'thrown at once, in the timer',
      (): Promise<void> => {
        throw new Error('away')
      },
    ],
  ])('come sooner after one that failed: %s', async (_, extend) => {
    const { store, beats } = counting(extend)
    const heartbeat = new Heartbeat(store, owned, { leaseMs: 1_200, inProgressMaxMs: DAY_MS }, () => {})
    await vi.advanceTimersByTimeAsync(400 + 100 + 50)
    expect(beats()).toBe(2)
    heartbeat.stop()
  })
})

describe('handing over', () => {
  it('waits for a sign of life that is under way, which would take the lease back', async () => {
    const answers: (() => void)[] = []
    const leasesMs: number[] = []
    const store: Store<unknown> = Object.assign(Object.create(memory()), {
      extend: (_: Owned, leaseMs: number) =>
        new Promise<void>((resolve) =>
          answers.push(() => {
            leasesMs.push(leaseMs)
            resolve()
          }),
        ),
    })
    const running = new Running<unknown>()
    const heartbeat = new Heartbeat(store, owned, { leaseMs: 300, inProgressMaxMs: DAY_MS }, () => {})
    running.begin(owned, heartbeat, 'handlers')
    await vi.advanceTimersByTimeAsync(100)
    const handedOver = running.handOver(store)
    await vi.advanceTimersByTimeAsync(200)
    // No other beat, and no end of the lease beside the beat.
    expect(answers).toHaveLength(1)
    answers[0]!()
    await vi.advanceTimersByTimeAsync(1)
    answers[1]!()
    await handedOver
    expect(leasesMs).toEqual([300, 0])
  })

  it('waits for one that gets no answer a moment only', async () => {
    const leasesMs: number[] = []
    const store: Store<unknown> = Object.assign(Object.create(memory()), {
      extend: (_: Owned, leaseMs: number) => {
        leasesMs.push(leaseMs)
        return leaseMs === 0 ? Promise.resolve() : new Promise(() => {})
      },
    })
    const running = new Running<unknown>()
    const heartbeat = new Heartbeat(store, owned, { leaseMs: 300, inProgressMaxMs: DAY_MS }, () => {})
    running.begin(owned, heartbeat, 'handlers')
    await vi.advanceTimersByTimeAsync(100)
    const handedOver = running.handOver(store)
    await vi.advanceTimersByTimeAsync(5_000)
    await handedOver
    expect(leasesMs).toEqual([300, 0])
  })
})
