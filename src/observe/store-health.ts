import { LIMITS } from '../core/limits.ts'
import type { Observers } from './observers.ts'
import { monotonicMs } from './stopwatch.ts'

interface Trouble {
  readonly code: string
  readonly reason: string
  readonly message: string
}

/**
 * Whether the store can be used, as its answers tell. A store that is away fails every call and every batch of a worker, so it is told when
 * it goes away, again only after a while, and when it is back. A store that fails now and then is told as seldom.
 */
export class StoreHealth {
  readonly #observers: Observers
  readonly #now: () => number
  #awaySinceMs: number | null = null
  #failures = 0
  #told = false
  #quietUntilMs = Number.NEGATIVE_INFINITY

  constructor(observers: Observers, now: () => number = monotonicMs) {
    this.#observers = observers
    this.#now = now
  }

  failed(trouble: Trouble): void {
    const nowMs = this.#now()
    this.#awaySinceMs ??= nowMs
    this.#failures += 1
    if (nowMs < this.#quietUntilMs) return
    this.#quietUntilMs = nowMs + LIMITS.storeAwayAgainMs
    this.#told = true
    const awayMs = nowMs - this.#awaySinceMs
    this.#observers.emit({ signal: 'store_away', ...trouble, failures: this.#failures, awayMs })
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
