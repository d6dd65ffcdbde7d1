import { LIMITS } from '../core/limits.ts'
import type { ConnectionQueue } from '../store/postgres/queue.ts'

/**
 * How long a request that came now would wait for a connection: as many as wait, times what it has taken of late to serve one of
 * them.
 *
 * Only time in which a caller waited counts: an idle pool lends few connections, and could lend many. And nothing is said before
 * callers have waited without a break for half a second: a burst that is served by then is no overload, however long its queue was
 * for a moment.
 */
export class QueueWait {
  readonly #queue: ConnectionQueue
  /** Stretches of time in which a caller waited, the latest last. */
  readonly #stretches: { readonly ms: number; readonly lent: number }[] = []
  #atMs: number
  #lent: number
  /** Since when no caller was lent a connection. */
  #drySinceMs: number

  constructor(queue: ConnectionQueue, nowMs: number) {
    this.#queue = queue
    this.#atMs = nowMs
    this.#drySinceMs = nowMs
    this.#lent = queue.lent
  }

  /** Called again and again, some ten times a second. */
  look(nowMs: number): void {
    const lent = this.#queue.lent - this.#lent
    const ms = nowMs - this.#atMs
    this.#lent = this.#queue.lent
    this.#atMs = nowMs
    if (lent > 0 || this.#queue.waiting === 0) this.#drySinceMs = nowMs
    if (this.#queue.waiting === 0) this.#stretches.length = 0
    else this.#stretches.push({ ms, lent })
    if (this.#stretches.length > STRETCHES_MAX) this.#stretches.shift()
  }

  waitMs(nowMs: number): number {
    const { waiting } = this.#queue
    const watchedMs = this.#stretches.reduce((sum, { ms }) => sum + ms, 0)
    if (waiting === 0 || watchedMs < LIMITS.overloadQueueWatchMs) return 0
    const lent = this.#stretches.reduce((sum, stretch) => sum + stretch.lent, 0)
    // Where no caller is served at all, the wait is at least as long as that has lasted.
    return Math.max((waiting * watchedMs) / Math.max(1, lent), nowMs - this.#drySinceMs)
  }
}

/** A second of them, where nothing keeps the event loop from looking. */
const STRETCHES_MAX = Math.ceil((2 * LIMITS.overloadQueueWatchMs) / LIMITS.overloadLookEveryMs)
