import { describe, expect, it, onTestFinished } from 'vitest'
import { type OverloadOptions, overload } from '../../src/limits/index.ts'
import { waitUntil } from '../setup/wait.ts'

/** A machine that many share is late by itself: where only numbers matter, no lag is too much. */
const NEVER_LATE = 1_000_000

function open(options: Partial<OverloadOptions>) {
  const load = overload({ in_flight_max: 1_000, lag_max_ms: NEVER_LATE, ...options })
  onTestFinished(() => load.stop())
  return load
}

describe('under overload', () => {
  it('new work is refused, and let in again only when it is calm', () => {
    const load = open({ in_flight_max: 10, calm: 0.5 })
    const leave = Array.from({ length: 10 }, () => load.enter())
    expect(load.admit()).toEqual({ admit: true })
    leave.push(load.enter())
    expect(load.admit()).toMatchObject({
      admit: false,
      code: 'overloaded',
      status: 503,
      retry_after_ms: 1_000,
    })
    // At the bound it would flap: one leaves, one is let in, and is too many.
    for (const left of [10, 9, 8, 7, 6]) {
      leave.pop()!()
      expect([load.in_flight, load.shedding, load.admit().admit]).toEqual([left, true, false])
    }
    leave.pop()!()
    expect([load.in_flight, load.shedding, load.admit().admit]).toEqual([5, false, true])
  })

  it('who leaves twice is counted once', async () => {
    const load = open({ in_flight_max: 1 })
    const leave = load.enter()
    leave()
    leave()
    expect(load.in_flight).toBe(0)
    await expect(load.run(() => Promise.reject(new Error('a bug')))).rejects.toThrow('a bug')
    expect(await load.run(async () => load.in_flight)).toBe(1)
    expect(load.in_flight).toBe(0)
  })

  it('an event loop that is late counts too, until it has caught up', async () => {
    const load = open({ lag_max_ms: 40 })
    await waitUntil('it is late', () => {
      const until = performance.now() + 120
      while (performance.now() < until);
      return load.shedding
    })
    expect(load.lag_ms).toBeGreaterThan(40)
    expect(load.admit().admit).toBe(false)
    await waitUntil('it is calm', () => load.admit().admit)
  })

  it.each([{ in_flight_max: 0 }, { lag_max_ms: 0 }, { calm: 0 }, { calm: 1.1 }, { retry_after_ms: -1 }])(
    'bounds that make no sense are refused: %j',
    (options) => {
      expect(() => open(options)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
    },
  )
})
