import { OnlyonceError } from './errors.ts'
import { IssuedKeys, looksIssued, type Scope, type SigningRing } from './key/index.ts'
import { LIMITS } from './limits.ts'
import type { RecordId } from './record/index.ts'

/** A key that was handed out. */
export interface IssuedKey {
  readonly key: string
  /** Milliseconds since the epoch, by the clock of the process that issued it. */
  readonly expires_at: number
}

/**
 * Hands keys out and judges those that come back.
 *
 * Expiry goes by the clock of the process, with an allowance: asking the database would cost every key a round trip,
 * for a bound on which nothing depends that must not fail. What happens once happens once by its record, under any
 * clock. A clock that is wrong by more than the allowance shows: where it is ahead, fresh keys are refused with
 * both times in the error; where it is far behind the others, fresh keys seem to come from the future, which is an
 * error of its own.
 */
export class Issuer {
  readonly #keys: IssuedKeys
  readonly #clock: () => number
  readonly #lifetime_max_ms: number

  constructor(ring: SigningRing, options: { clock: (() => number) | undefined; retention_ms: number }) {
    const { clock = Date.now, retention_ms } = options
    if (typeof clock !== 'function') {
      throw new OnlyonceError('option_invalid', { detail: 'clock is a function that gives milliseconds.' })
    }
    this.#keys = new IssuedKeys(ring)
    this.#clock = clock
    // By the time a record may be deleted, its key starts nothing new: so a retry that is very late does no harm.
    const retained_ms = Math.max(1, retention_ms - 2 * LIMITS.issued_key_skew_ms)
    this.#lifetime_max_ms = Math.min(LIMITS.issued_key_lifetime_max_ms, retained_ms)
  }

  issue(scope: Scope, expires_in_ms: number | undefined): IssuedKey {
    const max_ms = this.#lifetime_max_ms
    const lifetime_ms = expires_in_ms ?? Math.min(LIMITS.issued_key_lifetime_ms, max_ms)
    if (lifetime_ms > max_ms) {
      throw new OnlyonceError('option_invalid', {
        detail: `expires_in_ms is at most ${max_ms} here: a key must not outlive the record of its use.`,
      })
    }
    const expires_at_s = Math.ceil((this.now() + lifetime_ms) / 1_000)
    return { key: this.#keys.issue(scope, expires_at_s), expires_at: expires_at_s * 1_000 }
  }

  /**
   * Why this key may start nothing new, or null. Throws where it may do nothing at all: it is forged, or another's.
   *
   * An attempt that began in time may still be under way when its key expires, where no look can see it. Until it
   * must have ended, no client is told to get a new key: the work could be done twice.
   */
  lapseOf({ account, operation, key }: RecordId, deadline_ms: number): OnlyonceError | null {
    if (!looksIssued(key)) return null
    const expires_at = this.#keys.check(key, { account, operation }) * 1_000
    const now = this.now()
    const code = judge(now - expires_at, deadline_ms)
    if (code === null) return null
    const detail = `It expires at ${timeOf(expires_at)}, and the clock here says ${timeOf(now)}.`
    return new OnlyonceError(code, { detail })
  }

  /** A record must not be deleted before its key can start nothing any more, also where the call asks for less. */
  retentionOf({ account, operation, key }: RecordId, retention_ms: number): number {
    if (!looksIssued(key)) return retention_ms
    const left_ms = this.#keys.check(key, { account, operation }) * 1_000 - this.now()
    return Math.max(retention_ms, left_ms + 2 * LIMITS.issued_key_skew_ms)
  }

  now(): number {
    const now = this.#clock()
    if (Number.isFinite(now) && now >= 0 && now <= TIME_MAX_MS) return now
    throw new OnlyonceError('option_invalid', { detail: 'clock gives milliseconds since the epoch.' })
  }
}

/** `age_ms` counts from the expiry, and is negative before it. */
function judge(age_ms: number, deadline_ms: number) {
  const { issued_key_skew_ms, issued_key_lifetime_max_ms, settle_max_ms } = LIMITS
  if (age_ms < -(issued_key_lifetime_max_ms + issued_key_skew_ms)) return 'clocks_disagree'
  if (age_ms <= issued_key_skew_ms) return null
  // The process that let it start last may be behind us by the allowance once more, and has its whole deadline.
  const settled_ms = 2 * issued_key_skew_ms + deadline_ms + settle_max_ms
  return age_ms <= settled_ms ? 'key_just_expired' : 'key_expired'
}

/** The last moment that a date can name. */
const TIME_MAX_MS = 8.64e15

function timeOf(at_ms: number): string {
  return new Date(at_ms).toISOString()
}
