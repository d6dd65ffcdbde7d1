import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { backoffMs, retryAfterMs } from './backoff.ts'

it('waits between half and the whole of a time that doubles up to a bound, and never less than the first', () => {
  const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  const times = fc.tuple(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 100_000 }))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), times, chance, (n, [initial, more], chance) => {
      const max = initial + more
      const whole = Math.min(initial * 2 ** (n - 1), max)
      const ms = backoffMs(n, initial, max, chance)
      expect(ms).toBeGreaterThanOrEqual(Math.max(initial, whole / 2))
      expect(ms).toBeLessThanOrEqual(Math.max(initial, whole))
    }),
  )
})

it('spreads clients that failed at one moment', () => {
  const waits = Array.from({ length: 100 }, () => backoffMs(4, 500, 5_000))
  expect(new Set(waits).size).toBeGreaterThan(90)
})

it('reads Retry-After as seconds and as a date', () => {
  vi.useFakeTimers({ now: Date.parse('2026-01-01T00:00:00Z') })
  try {
    const at = (headers: Record<string, string>) => retryAfterMs(new Headers(headers))
    expect(at({})).toBeNull()
    expect(at({ 'retry-after': ' 7 ' })).toBe(7_000)
    expect(at({ 'retry-after': '0' })).toBe(0)
    expect(at({ 'retry-after': 'soon' })).toBeNull()
    expect(at({ 'retry-after': '-3' })).not.toBe(-3_000)
    expect(at({ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' })).toBe(30_000)
    expect(at({ 'retry-after': 'Wed, 31 Dec 2025 00:00:30 GMT' })).toBe(0)
    // A clock that is a day wrong does not count where the server tells its own.
    const date = 'Fri, 02 Jan 2026 00:00:00 GMT'
    expect(at({ 'retry-after': 'Fri, 02 Jan 2026 00:00:05 GMT', date })).toBe(5_000)
  } finally {
    vi.useRealTimers()
  }
})
