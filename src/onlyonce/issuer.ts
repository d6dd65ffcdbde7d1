import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { IssuedKeys, looksIssued, type Scope, type SigningRing } from '../key/index.ts'
import type { RecordId } from '../record/index.ts'

/** A key that was handed out. */
export interface IssuedKey {
  readonly key: string
  /** Milliseconds since the epoch, by the clock of the process that issued it. */
  readonly expiresAt: number
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
  readonly #lifetimeMaxMs: number

  constructor(ring: SigningRing, options: { clock: (() => number) | undefined; retentionMs: number }) {
    const { clock = Date.now, retentionMs } = options
    if (typeof clock !== 'function') {
      throw new OnlyonceError('option_invalid', { detail: 'clock is a function that gives milliseconds.' })
    }
    this.#keys = new IssuedKeys(ring)
    this.#clock = clock
    // By the time a record may be deleted, its key starts nothing new: so a retry that is very late does no harm.
    const retainedMs = Math.max(1, retentionMs - 2 * LIMITS.issuedKeySkewMs)
    this.#lifetimeMaxMs = Math.min(LIMITS.issuedKeyLifetimeMaxMs, retainedMs)
  }

  issue(scope: Scope, expiresInMs: number | undefined): IssuedKey {
    const maxMs = this.#lifetimeMaxMs
    const lifetimeMs = expiresInMs ?? Math.min(LIMITS.issuedKeyLifetimeMs, maxMs)
    if (lifetimeMs > maxMs) {
      throw new OnlyonceError('option_invalid', {
        detail: `expiresInMs is at most ${maxMs} here: a key must not outlive the record of its use.`,
      })
    }
    const expiresAtS = Math.ceil((this.now() + lifetimeMs) / 1_000)
    return { key: this.#keys.issue(scope, expiresAtS), expiresAt: expiresAtS * 1_000 }
  }

  /**
   * Why this key may start nothing new, or null. Throws where it may do nothing at all: it is forged, or another's.
   *
   * An attempt that began in time may still be under way when its key expires, where no look can see it. Until it
   * must have ended, no client is told to get a new key: the work could be done twice.
   */
  lapseOf({ account, operation, key }: RecordId, deadlineMs: number): OnlyonceError | null {
    if (!looksIssued(key)) return null
    const expiresAt = this.#keys.check(key, { account, operation }) * 1_000
    const now = this.now()
    const code = judge(now - expiresAt, deadlineMs)
    if (code === null) return null
    const detail = `It expires at ${timeOf(expiresAt)}, and the clock here says ${timeOf(now)}.`
    return new OnlyonceError(code, { detail })
  }

  /** A record must not be deleted before its key can start nothing any more, also where the call asks for less. */
  retentionOf({ account, operation, key }: RecordId, retentionMs: number): number {
    if (!looksIssued(key)) return retentionMs
    const leftMs = this.#keys.check(key, { account, operation }) * 1_000 - this.now()
    return Math.max(retentionMs, leftMs + 2 * LIMITS.issuedKeySkewMs)
  }

  now(): number {
    const now = this.#clock()
    if (Number.isFinite(now) && now >= 0 && now <= TIME_MAX_MS) return now
    throw new OnlyonceError('option_invalid', { detail: 'clock gives milliseconds since the epoch.' })
  }
}

/** `ageMs` counts from the expiry, and is negative before it. */
function judge(ageMs: number, deadlineMs: number) {
  const { issuedKeySkewMs, issuedKeyLifetimeMaxMs, settleMaxMs } = LIMITS
  if (ageMs < -(issuedKeyLifetimeMaxMs + issuedKeySkewMs)) return 'clocks_disagree'
  if (ageMs <= issuedKeySkewMs) return null
  // The process that let it start last may be behind us by the allowance once more, and has its whole deadline.
  const settledMs = 2 * issuedKeySkewMs + deadlineMs + settleMaxMs
  return ageMs <= settledMs ? 'key_just_expired' : 'key_expired'
}

/** The last moment that a date can name. */
const TIME_MAX_MS = 8.64e15

function timeOf(atMs: number): string {
  return new Date(atMs).toISOString()
}
