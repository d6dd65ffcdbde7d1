import { OnlyonceError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import { Deadline } from '../retry.ts'
import { tablesOf } from './install.ts'
import type { ResolvedOptions } from './options.ts'
import { inTime } from './takes.ts'

/**
 * Stands between a limiter and its store: a store that is away, slow or not installed is trouble, which is told, and never
 * thrown at a request. After it the store is left alone for a moment, so that requests do not queue for it in vain.
 */
export class Guard {
  readonly #options: ResolvedOptions
  #installed: Promise<void> | null = null
  #pause: Deadline | null = null

  constructor(options: ResolvedOptions) {
    this.#options = options
  }

  /** Makes the tables where they are missing, once. Tried again by whoever comes next where it failed. */
  start(): Promise<void> {
    this.#installed ??= tablesOf(this.#options).catch((error) => {
      this.#installed = null
      throw error
    })
    return this.#installed
  }

  /** Null where the store could not tell. */
  async ask<T>(question: () => Promise<T>): Promise<T | null> {
    if (this.#pause !== null && !this.#pause.passed) return null
    try {
      return await this.demand(question)
    } catch (error) {
      this.#pause = new Deadline(LIMITS.limit_pause_ms)
      try {
        this.#options.on_trouble(error)
      } catch {
        // Whoever listens must not harm the request either.
      }
      return null
    }
  }

  /** For those who look after limits, and want to hear what is wrong. */
  async demand<T>(question: () => Promise<T>): Promise<T> {
    const asked = this.start().then(question)
    try {
      return await inTime(asked, this.#options.wait_max_ms)
    } catch (error) {
      if (error instanceof OnlyonceError) throw error
      throw new OnlyonceError('store_unavailable', { cause: error })
    }
  }
}
