import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import { callGuarded } from '../core/thrown.ts'
import { tablesOf } from './install.ts'
import type { ResolvedOptions } from './options.ts'
import { inTime } from './takes.ts'

/**
 * Stands between a limiter and its store: a store that is away, slow or not installed is trouble, which is told, and never
 * thrown at a request. After it the store is not asked about the same subject for a moment, so that its requests do not queue
 * in vain. Other subjects are asked about all the same: one row that is locked must not open, or close, the limit for everybody.
 */
export class Guard {
  readonly #options: ResolvedOptions
  #installed: Promise<void> | null = null
  /** Until when the store is not asked about a subject. In the order of their ends. */
  readonly #pauses = new Map<string, Deadline>()

  constructor(options: ResolvedOptions) {
    this.#options = options
  }

  /** Makes the tables where they are missing, once. Tried again by the next caller where it failed. */
  start(): Promise<void> {
    this.#installed ??= tablesOf(this.#options).catch((error) => {
      this.#installed = null
      throw error
    })
    return this.#installed
  }

  /** Null where the store could not tell about this subject. */
  async ask<T>(subject: string, question: () => Promise<T>): Promise<T | null> {
    if (this.#isPaused(subject)) return null
    try {
      return await this.demand(question)
    } catch (error) {
      this.#pauseFor(subject)
      // The listener must not harm the request either, nor end the process.
      callGuarded(
        () => this.#options.onTrouble(error),
        () => {},
      )
      return null
    }
  }

  #isPaused(subject: string): boolean {
    const pause = this.#pauses.get(subject)
    if (pause === undefined) return false
    if (!pause.passed) return true
    this.#pauses.delete(subject)
    return false
  }

  #pauseFor(subject: string): void {
    this.#pauses.delete(subject)
    this.#pauses.set(subject, new Deadline(LIMITS.limitPauseMs))
    for (const [oldest, pause] of this.#pauses) {
      if (!pause.passed && this.#pauses.size <= LIMITS.limitPausedMax) break
      this.#pauses.delete(oldest)
    }
  }

  /** For those who look after limits, and want to hear what is wrong. */
  async demand<T>(question: () => Promise<T>): Promise<T> {
    const asked = this.start().then(question)
    try {
      return await inTime(asked, this.#options.waitMaxMs)
    } catch (error) {
      if (error instanceof OnlyonceError) throw error
      throw new OnlyonceError('store_unavailable', { cause: error })
    }
  }
}
