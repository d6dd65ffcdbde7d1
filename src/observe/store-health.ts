import { LIMITS } from '../core/limits.ts'
import type { Observers } from './observers.ts'
import { monotonicMs } from './stopwatch.ts'

interface Trouble {
  readonly code: string
  readonly reason: string
  readonly message: string
}

/**
 * Whether the store can be used, as its answers tell. A store that is away fails every call and every batch of a worker, so an outage is told when
 * it begins, again only after a while, and when it is over. A store that fails now and then has no outage at each failure: a failure soon after
 * another one is told as seldom as one that goes on, unless no answer comes for a moment.
 */
export class StoreHealth {
  readonly #observers: Observers
  readonly #now: () => number
  #awaySinceMs: number | null = null
  #failures = 0
  #told = false
  #quietUntilMs = Number.NEGATIVE_INFINITY
  #failedAtMs = Number.NEGATIVE_INFINITY
  /** The present outage began after a time without any failure. */
  #fresh = false

  constructor(observers: Observers, now: () => number = monotonicMs) {
    this.#observers = observers
    this.#now = now
  }

  failed(trouble: Trouble): void {
    const nowMs = this.#now()
    if (this.#awaySinceMs === null) {
      this.#awaySinceMs = nowMs
      this.#fresh = nowMs - this.#failedAtMs >= LIMITS.storeSteadyMs
    }
    this.#failedAtMs = nowMs
    this.#failures += 1
    if (nowMs < this.#quietUntilMs && !this.#isUntold(nowMs - this.#awaySinceMs)) return
    this.#quietUntilMs = nowMs + LIMITS.storeAwayAgainMs
    this.#told = true
    const awayMs = nowMs - this.#awaySinceMs
    this.#observers.emit({ signal: 'store_away', ...trouble, failures: this.#failures, awayMs })
  }

  #isUntold(awayMs: number): boolean {
    return !this.#told && (this.#fresh || awayMs >= LIMITS.storeAwaySureMs)
  }

  answered(): void {
    if (this.#awaySinceMs === null) return
    const [failures, awayMs, told] = [this.#failures, this.#now() - this.#awaySinceMs, this.#told]
    this.#awaySinceMs = null
    this.#failures = 0
    this.#told = false
    if (told) this.#observers.emit({ signal: 'store_back', failures, awayMs })
  }
}
