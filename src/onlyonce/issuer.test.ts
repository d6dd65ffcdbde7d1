import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { keyRing } from '../core/ring.ts'
import { Issuer } from './issuer.ts'

const HOUR_MS = 3_600_000
const NOW = 1_800_000_000_000
const RING = keyRing('the secret of the tests of the issuer', 'fingerprint')
const SCOPE = { account: 'acct_1', operation: 'payments.create' }
const SKEW_MS = LIMITS.issuedKeySkewMs
const DEADLINE_MS = 60_000
/** From here on, nothing that began in time is still under way. */
const SETTLED_MS = 2 * SKEW_MS + DEADLINE_MS + LIMITS.settleMaxMs

const issuerAt = (now: number, retentionMs: number = LIMITS.retentionMs) =>
  new Issuer(RING, { clock: () => now, retentionMs })
const issue = (expiresInMs?: number) => issuerAt(NOW).issue(SCOPE, expiresInMs)
const codeAt = (now: number, key: string) =>
  issuerAt(now).lapseOf({ ...SCOPE, key }, DEADLINE_MS)?.code ?? null

describe('how long a key lives', () => {
  it('is an hour unless told otherwise, in whole seconds', () => {
    expect(issue().expiresAt).toBe(NOW + HOUR_MS)
    expect(issue(1).expiresAt).toBe(NOW + 1_000)
    expect(issue(1_001).expiresAt).toBe(NOW + 2_000)
  })

  it('is never longer than the records of the door are kept', () => {
    const dayMs = 24 * HOUR_MS
    expect(issue(dayMs - 2 * SKEW_MS).expiresAt).toBe(NOW + dayMs - 2 * SKEW_MS)
    expect(() => issue(dayMs - 2 * SKEW_MS + 1)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
    expect(issuerAt(NOW, 10 * 60_000).issue(SCOPE, undefined).expiresAt).toBe(NOW + 8 * 60_000)
    expect(issuerAt(NOW, 1).issue(SCOPE, undefined).expiresAt).toBe(NOW + 1_000)
  })

  it('is a week at the longest', () => {
    const patient = issuerAt(NOW, 365 * 24 * HOUR_MS)
    const weekMs = LIMITS.issuedKeyLifetimeMaxMs
    expect(patient.issue(SCOPE, weekMs).expiresAt).toBe(NOW + weekMs)
    expect(() => patient.issue(SCOPE, weekMs + 1)).toThrow(/at most 604800000/)
  })

  it('starts nothing new by the time its record may be deleted, clocks apart by the allowance included', () => {
    const { key } = issue(24 * HOUR_MS - 2 * SKEW_MS)
    // Used at once by a process that is behind; its record is kept for a day.
    expect(codeAt(NOW - SKEW_MS, key)).toBeNull()
    expect(codeAt(NOW + 24 * HOUR_MS - SKEW_MS, key)).toBeNull()
    expect(codeAt(NOW + 24 * HOUR_MS - SKEW_MS + 1, key)).toBe('key_just_expired')
  })
})

describe('a key that comes back', () => {
  it.each([
    ['at once', -HOUR_MS, null],
    ['at its expiry', 0, null],
    ['within the allowance', SKEW_MS, null],
    ['past it, while an attempt may be under way', SKEW_MS + 1, 'key_just_expired'],
    ['until none can be', SETTLED_MS, 'key_just_expired'],
    ['after that', SETTLED_MS + 1, 'key_expired'],
    ['years later', 1e12, 'key_expired'],
    ['where the clock stands at the epoch', -(NOW + HOUR_MS), 'clocks_disagree'],
  ])('%s', (_, ageMs, code) => {
    const { key, expiresAt } = issue()
    expect(codeAt(expiresAt + ageMs, key)).toBe(code)
  })

  it('starts something new from a week before its expiry to the allowance after it, and at no other time', () => {
    const { key, expiresAt } = issue()
    const ageMs = fc.integer({ min: -20 * 24 * HOUR_MS, max: 20 * 24 * HOUR_MS })
    fc.assert(
      fc.property(ageMs, (age) => {
        const starts = age <= SKEW_MS && age >= -(LIMITS.issuedKeyLifetimeMaxMs + SKEW_MS)
        expect(codeAt(expiresAt + age, key) === null).toBe(starts)
      }),
    )
  })

  it('tells both times, so that a clock that is wrong is seen', () => {
    const { key, expiresAt } = issue()
    const error = issuerAt(expiresAt + 1e9).lapseOf({ ...SCOPE, key }, DEADLINE_MS)
    expect(error?.message).toContain('2027-01-15T09:00:00.000Z')
    expect(error?.message).toContain('2027-01-26T22:46:40.000Z')
  })

  it('is refused at once when it is forged, and a key of the client is not looked at', () => {
    const { key } = issue()
    expect(() =>
      codeAt(
        NOW,
        key.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
      ),
    ).toThrow(expect.objectContaining({ code: 'key_forged' }))
    expect(codeAt(NOW, '8e03978e-40d5-43e8-bc93-6894a57f9324')).toBeNull()
  })
})

it.each([Number.NaN, -1, Number.POSITIVE_INFINITY, 9e15, 'noon'])(
  'a clock that says %s is refused',
  (now) => {
    const issuer = new Issuer(RING, { clock: () => now as number, retentionMs: 1 })
    expect(() => issuer.issue(SCOPE, 1)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  },
)
