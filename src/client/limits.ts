import { now } from './clock.ts'

/** Tokens for retries. They come back with time and with each call, so that retries stay a small part of the traffic. */
export class Budget {
  #tokens: number
  #at = now()
  readonly #given: { burst: number; perSecond: number; ratio: number }

  constructor(given: { burst: number; perSecond: number; ratio: number }) {
    this.#given = given
    this.#tokens = given.burst
  }

  /** A call begins. */
  earn(): void {
    this.#add(this.#given.ratio)
  }

  /** Whether a retry may be sent now; it has taken its token then. */
  take(): boolean {
    this.#add(0)
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }

  #add(more: number): void {
    const { burst, perSecond } = this.#given
    const at = now()
    this.#tokens = Math.min(burst, this.#tokens + more + ((at - this.#at) / 1_000) * perSecond)
    this.#at = at
  }
}

/** Whether an origin is worth a request now. */
export class Breaker {
  #failures = 0
  #openUntil = 0
  #probing = false
  readonly #given: { failures: number; openMs: number }

  constructor(given: { failures: number; openMs: number }) {
    this.#given = given
  }

  /** How long no request may be sent; 0 where this one may. Each one that may must tell its end by `leave`. */
  enter(): number {
    if (this.#failures < this.#given.failures) return 0
    const left = this.#openUntil - now()
    if (left > 0) return left
    // One request tries, and the others wait for what becomes of it.
    if (this.#probing) return this.#given.openMs
    this.#probing = true
    return 0
  }

  /** Null: the attempt was given up by its caller, which says nothing about the server. */
  leave(answered: boolean | null): void {
    this.#probing = false
    if (answered === null) return
    this.#failures = answered ? 0 : this.#failures + 1
    if (!answered) this.#openUntil = now() + this.#given.openMs
  }
}
