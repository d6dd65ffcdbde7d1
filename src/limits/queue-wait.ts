import { LIMITS } from '../limits.ts'
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
  #at_ms: number
  #lent: number
  /** Since when no caller was lent a connection. */
  #dry_since_ms: number

  constructor(queue: ConnectionQueue, now_ms: number) {
    this.#queue = queue
    this.#at_ms = now_ms
    this.#dry_since_ms = now_ms
    this.#lent = queue.lent
  }

  /** Called again and again, some ten times a second. */
  look(now_ms: number): void {
    const lent = this.#queue.lent - this.#lent
    const ms = now_ms - this.#at_ms
    this.#lent = this.#queue.lent
    this.#at_ms = now_ms
    if (lent > 0 || this.#queue.waiting === 0) this.#dry_since_ms = now_ms
    if (this.#queue.waiting === 0) this.#stretches.length = 0
    else this.#stretches.push({ ms, lent })
    if (this.#stretches.length > STRETCHES_MAX) this.#stretches.shift()
  }

  waitMs(now_ms: number): number {
    const { waiting } = this.#queue
    const watched_ms = this.#stretches.reduce((sum, { ms }) => sum + ms, 0)
    if (waiting === 0 || watched_ms < LIMITS.overload_queue_watch_ms) return 0
    const lent = this.#stretches.reduce((sum, stretch) => sum + stretch.lent, 0)
    // Where no caller is served at all, the wait is at least as long as that has lasted.
    return Math.max((waiting * watched_ms) / Math.max(1, lent), now_ms - this.#dry_since_ms)
  }
}

/** A second of them, where nothing keeps the event loop from looking. */
const STRETCHES_MAX = Math.ceil((2 * LIMITS.overload_queue_watch_ms) / LIMITS.overload_look_every_ms)
