import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../limits.ts'
import { afterLook, afterOwner, lookedAtIn } from './come-back.ts'
import { type Claimant, extend, reserve } from './index.ts'

const OWNER: Claimant = {
  kind: 'handler',
  attempt_id: 'attempt',
  owner: 'owner',
  fingerprint: { key_id: 'k', digest: Buffer.from([1]) },
  trace: null,
}
const LEASE_MS = 30_000

const time = fc.integer({ min: 0, max: 100 * 3_600_000 })

describe('a client that met an owner', () => {
  it('is told to come back soon at first, then as late again, and when the lease is over at the latest', () => {
    const record = reserve(null, OWNER, LEASE_MS, 0)
    const told = [0, 200, 1_000, 4_000, 12_000, 20_000, 29_999].map((now) => afterOwner(record, now))
    expect(told).toEqual([1_000, 1_000, 1_000, 4_000, 12_000, 10_000, 1])
  })

  it('comes back at the end of the lease of a dead owner, and has not asked more than a few times', () => {
    const record = reserve(null, OWNER, LEASE_MS, 0)
    let asked = 0
    let now = 0
    for (; now < record.lease_until; now += afterOwner(record, now)) asked += 1
    expect(now).toBe(LEASE_MS)
    expect(asked).toBeLessThan(8)
  })

  it('is never told less than a millisecond, and never to wait past the lease', () => {
    fc.assert(
      fc.property(time, time, fc.integer({ min: 1, max: 3_600_000 }), (began, later, lease_ms) => {
        const now = began + later
        const record = extend(reserve(null, OWNER, lease_ms, began), lease_ms, now)
        const wait_ms = afterOwner(record, now)
        expect(wait_ms).toBeGreaterThanOrEqual(1)
        expect(wait_ms).toBeLessThanOrEqual(lease_ms)
      }),
    )
  })
})

describe('a client that met a doubt', () => {
  it('is told when the next look is over, as far as an hour ahead', () => {
    const look_at = 100_000
    expect(afterLook({ look_at, changed_at: 0 }, 40_000)).toBe(60_000 + LIMITS.worker_every_ms)
    expect(afterLook({ look_at: 86_400_000, changed_at: 0 }, 0)).toBe(LIMITS.retry_after_max_ms)
    expect(lookedAtIn(2_000)).toBe(2_000 + LIMITS.worker_every_ms)
  })

  it('is told to come ever more seldom where the look does not come, or nothing looks', () => {
    expect(
      [0, 500, 5_000, 10 * 3_600_000].map((late) => afterLook({ look_at: 7, changed_at: 0 }, 7 + late)),
    ).toEqual([1_000, 1_000, 5_000, LIMITS.retry_after_max_ms])
    expect([0, 5_000].map((age) => afterLook({ look_at: null, changed_at: 9 }, 9 + age))).toEqual([
      1_000, 5_000,
    ])
  })

  it('never comes before the look', () => {
    fc.assert(
      fc.property(time, fc.integer({ min: 1, max: 3_500_000 }), (now, in_ms) => {
        expect(now + afterLook({ look_at: now + in_ms, changed_at: 0 }, now)).toBeGreaterThanOrEqual(
          now + in_ms,
        )
      }),
    )
  })
})

describe('the looks at a doubt', () => {
  const schedule = LIMITS.reconcile_after_ms
  /** How long the looks went on when the first came after a minute: nobody is to be parked earlier than then. */
  const HORIZON_MS = 60_000 + 300_000 + 3_600_000 + 21_600_000 + 86_400_000

  it('begin within seconds, spread out, and go on as long as ever', () => {
    const at_ms = schedule.map((_, i) => schedule.slice(0, i + 1).reduce((sum, pause) => sum + pause, 0))
    expect(at_ms.filter((ms) => ms <= 30_000).length).toBeGreaterThanOrEqual(3)
    expect(at_ms[0]).toBeLessThanOrEqual(3_000)
    expect(at_ms.at(-1)).toBeGreaterThanOrEqual(HORIZON_MS)
  })

  it('are ever further apart, but never so far that a doubt of one length waits for long', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: schedule.length - 1 }), (i) => {
        const [before, after] = [schedule[i - 1]!, schedule[i]!]
        expect(after).toBeGreaterThan(before)
        expect(after).toBeLessThanOrEqual(before * 6)
      }),
    )
  })

  it('find what came to an end at any time within six times as long, and a few seconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: HORIZON_MS }), (ended_ms) => {
        let at_ms = 0
        const found = schedule.some((pause) => {
          at_ms += pause
          return at_ms >= ended_ms
        })
        expect(found).toBe(true)
        expect(at_ms).toBeLessThanOrEqual(ended_ms * 6 + 2_000)
      }),
    )
  })

  it('come at least once after most lookups have caught up with what was sent', () => {
    const settled = schedule.filter((_, i) => {
      const at_ms = schedule.slice(0, i + 1).reduce((sum, pause) => sum + pause, 0)
      return at_ms >= LIMITS.call_settle_ms
    })
    expect(settled.length).toBeGreaterThanOrEqual(3)
  })
})
