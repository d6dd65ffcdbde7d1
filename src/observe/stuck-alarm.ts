import { LIMITS } from '../limits.ts'
import type { Stuck } from '../record/index.ts'
import type { Observers } from './observers.ts'

/**
 * Counts stuck records again and again and tells the counts. The next count is planned when the last one is over, so
 * that a slow database is never asked twice at once; and with some jitter, so that processes that were started
 * together do not ask together.
 */
export class StuckAlarm {
  readonly #count: (older_than_ms: number) => Promise<Stuck>
  readonly #observers: Observers
  readonly #older_than_ms: number
  readonly #every_ms: number
  #timer: NodeJS.Timeout | undefined
  #counting: Promise<void> = Promise.resolve()
  #state: 'idle' | 'started' | 'stopped' = 'idle'

  constructor(
    count: (older_than_ms: number) => Promise<Stuck>,
    observers: Observers,
    bounds: { readonly older_than_ms: number; readonly every_ms: number },
  ) {
    this.#count = count
    this.#observers = observers
    this.#older_than_ms = bounds.older_than_ms
    this.#every_ms = bounds.every_ms
  }

  /** Without anybody who observes nothing is counted. */
  start(): void {
    if (this.#state !== 'idle' || this.#observers.none) return
    this.#state = 'started'
    this.#plan(this.#every_ms * Math.random())
  }

  /** Resolves when a count that was under way is over. */
  stop(): Promise<void> {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
    return this.#counting
  }

  #plan(in_ms: number): void {
    if (this.#state === 'stopped') return
    this.#timer = setTimeout(
      () => {
        this.#counting = this.#tell().finally(() => this.#plan(this.#every_ms * (0.9 + 0.2 * Math.random())))
      },
      Math.min(in_ms, LIMITS.timer_max_ms),
    )
    // Watching keeps no process alive.
    this.#timer.unref()
  }

  async #tell(): Promise<void> {
    const older_than_ms = this.#older_than_ms
    try {
      const stuck = await this.#count(older_than_ms)
      this.#observers.emit({ signal: 'stuck', older_than_ms, stuck })
    } catch {
      // The store's error was told where it came up; the next count comes anyway.
    }
  }
}
