import { LIMITS } from '../limits.ts'
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
  #away_since_ms: number | null = null
  #failures = 0
  #told = false
  #quiet_until_ms = Number.NEGATIVE_INFINITY

  constructor(observers: Observers, now: () => number = monotonicMs) {
    this.#observers = observers
    this.#now = now
  }

  failed(trouble: Trouble): void {
    const now_ms = this.#now()
    this.#away_since_ms ??= now_ms
    this.#failures += 1
    if (now_ms < this.#quiet_until_ms) return
    this.#quiet_until_ms = now_ms + LIMITS.store_away_again_ms
    this.#told = true
    const away_ms = now_ms - this.#away_since_ms
    this.#observers.emit({ signal: 'store_away', ...trouble, failures: this.#failures, away_ms })
  }

  answered(): void {
    if (this.#away_since_ms === null) return
    const [failures, away_ms, told] = [this.#failures, this.#now() - this.#away_since_ms, this.#told]
    this.#away_since_ms = null
    this.#failures = 0
    this.#told = false
    if (told) this.#observers.emit({ signal: 'store_back', failures, away_ms })
  }
}
