import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { afterLook, afterOwner, lookedAtIn } from './come-back.ts'
import { type Claimant, extend, reserve } from './index.ts'

const OWNER: Claimant = {
  kind: 'handler',
  attemptId: 'attempt',
  owner: 'owner',
  fingerprint: { keyId: 'k', digest: Buffer.from([1]) },
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
    for (; now < record.leaseUntil; now += afterOwner(record, now)) asked += 1
    expect(now).toBe(LEASE_MS)
    expect(asked).toBeLessThan(8)
  })

  it('is never told less than a millisecond, and never to wait past the lease', () => {
    fc.assert(
      fc.property(time, time, fc.integer({ min: 1, max: 3_600_000 }), (began, later, leaseMs) => {
        const now = began + later
        const record = extend(reserve(null, OWNER, leaseMs, began), leaseMs, now)
        const waitMs = afterOwner(record, now)
        expect(waitMs).toBeGreaterThanOrEqual(1)
        expect(waitMs).toBeLessThanOrEqual(leaseMs)
      }),
    )
  })
})

describe('a client that met a doubt', () => {
  it('is told when the next look is over, as far as an hour ahead', () => {
    const lookAt = 100_000
    expect(afterLook({ lookAt, changedAt: 0 }, 40_000)).toBe(60_000 + LIMITS.workerEveryMs)
    expect(afterLook({ lookAt: 86_400_000, changedAt: 0 }, 0)).toBe(LIMITS.retryAfterMaxMs)
    expect(lookedAtIn(2_000)).toBe(2_000 + LIMITS.workerEveryMs)
  })

  it('is told to come ever more seldom where the look does not come, or nothing looks', () => {
    expect(
      [0, 500, 5_000, 10 * 3_600_000].map((late) => afterLook({ lookAt: 7, changedAt: 0 }, 7 + late)),
    ).toEqual([1_000, 1_000, 5_000, LIMITS.retryAfterMaxMs])
    expect([0, 5_000].map((age) => afterLook({ lookAt: null, changedAt: 9 }, 9 + age))).toEqual([
      1_000, 5_000,
    ])
  })

  it('never comes before the look', () => {
    fc.assert(
      fc.property(time, fc.integer({ min: 1, max: 3_500_000 }), (now, inMs) => {
        expect(now + afterLook({ lookAt: now + inMs, changedAt: 0 }, now)).toBeGreaterThanOrEqual(now + inMs)
      }),
    )
  })
})

describe('the looks at a doubt', () => {
  const schedule = LIMITS.reconcileAfterMs
  /** How long the looks went on when the first came after a minute: nobody is to be parked earlier than then. */
  const HORIZON_MS = 60_000 + 300_000 + 3_600_000 + 21_600_000 + 86_400_000

  it('begin within seconds, spread out, and go on as long as ever', () => {
    const atMs = schedule.map((_, i) => schedule.slice(0, i + 1).reduce((sum, pause) => sum + pause, 0))
    expect(atMs.filter((ms) => ms <= 30_000).length).toBeGreaterThanOrEqual(3)
    expect(atMs[0]).toBeLessThanOrEqual(3_000)
    expect(atMs.at(-1)).toBeGreaterThanOrEqual(HORIZON_MS)
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
      fc.property(fc.integer({ min: 0, max: HORIZON_MS }), (endedMs) => {
        let atMs = 0
        const found = schedule.some((pause) => {
          atMs += pause
          return atMs >= endedMs
        })
        expect(found).toBe(true)
        expect(atMs).toBeLessThanOrEqual(endedMs * 6 + 2_000)
      }),
    )
  })

  it('come at least once after most lookups have caught up with what was sent', () => {
    const settled = schedule.filter((_, i) => {
      const atMs = schedule.slice(0, i + 1).reduce((sum, pause) => sum + pause, 0)
      return atMs >= LIMITS.callVisibleWithinMs
    })
    expect(settled.length).toBeGreaterThanOrEqual(3)
  })
})
