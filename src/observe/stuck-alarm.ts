import { LIMITS } from '../core/limits.ts'
import type { Stuck } from '../record/index.ts'
import type { Observers } from './observers.ts'

/**
 * Counts stuck records again and again and tells the counts. The next count is planned when the last one is over, so
 * that a slow database is never asked twice at once; and with some jitter, so that processes that were started
 * together do not ask together.
 */
export class StuckAlarm {
  readonly #count: (olderThanMs: number) => Promise<Stuck>
  readonly #observers: Observers
  readonly #olderThanMs: number
  readonly #everyMs: number
  #timer: NodeJS.Timeout | undefined
  #counting: Promise<void> = Promise.resolve()
  #state: 'idle' | 'started' | 'stopped' = 'idle'

  constructor(
    count: (olderThanMs: number) => Promise<Stuck>,
    observers: Observers,
    bounds: { readonly olderThanMs: number; readonly everyMs: number },
  ) {
    this.#count = count
    this.#observers = observers
    this.#olderThanMs = bounds.olderThanMs
    this.#everyMs = bounds.everyMs
  }

  /** Without anybody who observes nothing is counted. */
  start(): void {
    if (this.#state !== 'idle' || this.#observers.none) return
    this.#state = 'started'
    this.#plan(this.#everyMs * Math.random())
  }

  /** Resolves when a count that was under way is over. */
  stop(): Promise<void> {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
    return this.#counting
  }

  #plan(inMs: number): void {
    if (this.#state === 'stopped') return
    this.#timer = setTimeout(
      () => {
        this.#counting = this.#tell().finally(() => this.#plan(this.#everyMs * (0.9 + 0.2 * Math.random())))
      },
      Math.min(inMs, LIMITS.timerMaxMs),
    )
    // Watching keeps no process alive.
    this.#timer.unref()
  }

  async #tell(): Promise<void> {
    const olderThanMs = this.#olderThanMs
    try {
      const stuck = await this.#count(olderThanMs)
      this.#observers.emit({ signal: 'stuck', olderThanMs, stuck })
    } catch {
      // The store's error was told where it came up; the next count comes anyway.
    }
  }
}
