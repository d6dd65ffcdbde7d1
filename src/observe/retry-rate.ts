import { LIMITS } from '../core/limits.ts'
import type { Signal } from './signals.ts'
import { monotonicMs } from './stopwatch.ts'

interface Slot {
  /** Which stretch of time it counts; an older number is left over from the turn before. */
  stretch: number
  all: number
  retries: number
}

/**
 * Which share of the reservations in the last minute were not first attempts. A ring of one-second counts: exact to
 * a second, and as large under any load.
 */
export class RetryRate {
  readonly #clock: () => number
  readonly #slotMs: number
  readonly #slots: Slot[]

  constructor(options: { readonly windowMs?: number; readonly clock?: () => number } = {}) {
    this.#clock = options.clock ?? monotonicMs
    this.#slotMs = (options.windowMs ?? LIMITS.retryRateWindowMs) / LIMITS.retryRateSlots
    this.#slots = Array.from({ length: LIMITS.retryRateSlots }, () => ({ stretch: -1, all: 0, retries: 0 }))
  }

  /** A reused key is no retry and no first attempt: it is left out on both sides. */
  hear(signal: Signal): void {
    if (signal.signal !== 'reserved') return
    const stretch = this.#now()
    const slot = this.#slots[stretch % this.#slots.length]!
    if (slot.stretch !== stretch) {
      slot.stretch = stretch
      slot.all = 0
      slot.retries = 0
    }
    slot.all += 1
    if (signal.kind !== 'created') slot.retries += 1
  }

  /** From 0 to 1; 0 when there was nothing. */
  get value(): number {
    const oldest = this.#now() - this.#slots.length + 1
    let all = 0
    let retries = 0
    for (const slot of this.#slots) {
      if (slot.stretch < oldest) continue
      all += slot.all
      retries += slot.retries
    }
    return all === 0 ? 0 : retries / all
  }

  #now(): number {
    return Math.floor(this.#clock() / this.#slotMs)
  }
}
