import type { Attempt } from './options.ts'
import type { KeyStatus } from './status.ts'

/** What a failure knows. */
export interface FailureFacts {
  /** What the server said last (`parked`, `rate_limited`, …), or why the client stopped (`no_answer`, `aborted`, …). */
  readonly code: string
  /** Empty where the call has failed before there was a key. */
  readonly key: string
  readonly attempts: readonly Attempt[]
  /** The last answer, if there was one. Its body can be read. */
  readonly response: Response | null
  /** After how long the server wants to be asked again; null where it did not say so. */
  readonly retryAfterMs: number | null
  readonly ms: number
}

/** What a failure is made from. */
export type FailureInit = Partial<FailureFacts> & {
  readonly code: string
  readonly cause?: unknown
  readonly status?: () => Promise<KeyStatus>
}

/** A page may hold two copies of the package. So classes are known by a mark that all copies share, not by their identity. */
const MARK = /* @__PURE__ */ Symbol.for('onlyonce.client.failure')

/** What the three classes have in common. */
class Failure extends Error implements FailureFacts {
  declare readonly code: string
  declare readonly key: string
  declare readonly attempts: readonly Attempt[]
  declare readonly response: Response | null
  declare readonly retryAfterMs: number | null
  declare readonly ms: number

  constructor(message: string, { cause, status: _, ...facts }: FailureInit) {
    super(`${message} (${facts.code})`, { cause })
    Object.defineProperty(this, MARK, { value: true })
    Object.assign(this, { key: '', attempts: [], response: null, retryAfterMs: null, ms: 0 }, facts)
  }
}

/**
 * Nothing was executed: each attempt is proved to have done nothing, or the server has looked at the record of the key and said so. The same
 * action may be sent again.
 *
 * @example
 * if (error instanceof NotExecuted) offerToTryAgain()
 */
export class NotExecuted extends Failure {
  override readonly name = 'NotExecuted'

  constructor(facts: FailureInit) {
    super('The request was not executed. It may be sent again.', facts)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return bears(value, 'NotExecuted')
  }
}

/**
 * It was executed, and the answer is lost or was not kept. Do not send it again. `response` and `attempts` have what is known.
 *
 * @example
 * if (error instanceof Executed) showThatItIsPaid(error.key)
 */
export class Executed extends Failure {
  override readonly name = 'Executed'

  constructor(facts: FailureInit) {
    super('The request was executed. Its answer is lost.', facts)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return bears(value, 'Executed')
  }
}

/**
 * It may have been executed, or may still be. A new key is not safe. Send the same request with the same key again, or ask `status()`.
 *
 * @example
 * if (error instanceof OutcomeUnknown) showPending((await error.status()).detail)
 */
export class OutcomeUnknown extends Failure {
  override readonly name = 'OutcomeUnknown'
  /** Asks the server what became of the key. */
  declare readonly status: () => Promise<KeyStatus>

  constructor(facts: FailureInit) {
    super('It is not known whether the request was executed. Use the same key again.', facts)
    const { status = () => Promise.reject(this) } = facts
    Object.defineProperty(this, 'status', { value: status })
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return bears(value, 'OutcomeUnknown')
  }
}

/** What a call rejects with, beside a TypeError for a mistake of the caller's. */
export type CallFailure = NotExecuted | Executed | OutcomeUnknown

function bears(value: unknown, name: string): boolean {
  try {
    const failure = value as (Record<symbol, unknown> & { readonly name: string }) | null
    return typeof value === 'object' && failure?.[MARK] === true && failure.name === name
  } catch {
    // A proxy that was revoked.
    return false
  }
}
