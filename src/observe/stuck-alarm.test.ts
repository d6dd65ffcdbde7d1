import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { makeRecorder } from '../../test/setup/recorder.ts'
import { onlyonce } from '../index.ts'
import { memory } from '../store/memory/index.ts'

const EVERY_MS = 1_000
const secret = 'a secret of more than thirty-two bytes.'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A store that takes its time to count stuck records, by the clock of the test, and keeps count of that. */
function slowStore(takesMs: number) {
  const counts = { asked: 0, now: 0, mostAtOnce: 0 }
  const store = memory()
  const count = store.stuck.bind(store)
  store.stuck = async (olderThanMs) => {
    counts.asked += 1
    counts.now += 1
    counts.mostAtOnce = Math.max(counts.mostAtOnce, counts.now)
    await new Promise((resolve) => setTimeout(resolve, takesMs))
    counts.now -= 1
    return await count(olderThanMs)
  }
  return { store, counts }
}

it('counts about once in each period, the first time within the first', async () => {
  const { store, counts } = slowStore(1)
  const heard = makeRecorder()
  const once = onlyonce({ store, secret, observe: heard, stuckCheckEveryMs: EVERY_MS })
  await vi.advanceTimersByTimeAsync(10 * EVERY_MS)
  expect(counts.asked).toBe(0)
  await once.start()
  await once.start()
  await vi.advanceTimersByTimeAsync(EVERY_MS + 1)
  expect(counts.asked).toBeGreaterThanOrEqual(1)
  await vi.advanceTimersByTimeAsync(100 * EVERY_MS)
  expect(counts.asked).toBeGreaterThanOrEqual(90)
  expect(counts.asked).toBeLessThanOrEqual(113)
  expect(heard.of('stuck').length).toBeGreaterThanOrEqual(counts.asked - 1)
})

it('never asks twice at once', async () => {
  const { store, counts } = slowStore(5 * EVERY_MS)
  const once = onlyonce({ store, secret, observe: makeRecorder(), stuckCheckEveryMs: EVERY_MS })
  await once.start()
  await vi.advanceTimersByTimeAsync(60 * EVERY_MS)
  expect(counts.asked).toBeGreaterThanOrEqual(9)
  expect(counts.mostAtOnce).toBe(1)
})

it('ends at close, which waits for a count that is under way', async () => {
  const { store, counts } = slowStore(100)
  const heard = makeRecorder()
  const once = onlyonce({ store, secret, observe: heard, stuckCheckEveryMs: EVERY_MS })
  await once.start()
  while (counts.now === 0) await vi.advanceTimersByTimeAsync(10)
  const closed = once.close()
  await vi.advanceTimersByTimeAsync(100)
  await closed
  expect(heard.of('stuck')).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(100 * EVERY_MS)
  expect(counts).toMatchObject({ asked: 1, now: 0 })
  expect(vi.getTimerCount()).toBe(0)
})

it('asks nothing when nobody observes', async () => {
  const { store, counts } = slowStore(1)
  const once = onlyonce({ store, secret, stuckCheckEveryMs: EVERY_MS })
  await once.start()
  await vi.advanceTimersByTimeAsync(100 * EVERY_MS)
  expect(counts.asked).toBe(0)
})

it('asks Node.js for no timer that would fire at once', async () => {
  const set = vi.spyOn(globalThis, 'setTimeout')
  const stuckCheckEveryMs = Number.MAX_SAFE_INTEGER
  const observe = makeRecorder()
  const once = onlyonce({ store: memory(), secret, observe, stuckCheckEveryMs, background: false })
  await once.start()
  expect(set.mock.calls.map(([, inMs]) => inMs)).toEqual([2 ** 31 - 1])
})
