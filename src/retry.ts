import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS } from './limits.ts'

/**
 * The one place that decides how long to wait between tries: exponential, with full jitter, so that callers
 * who collided do not meet again, and bounded.
 */
export function backoffMs(
  tries: number,
  random: () => number = Math.random,
  { min_ms, max_ms }: Backoff = CALLS,
): number {
  const ceiling = Math.max(min_ms, Math.min(max_ms, min_ms * 2 ** Math.min(tries, 20)))
  return min_ms + random() * (ceiling - min_ms)
}

export interface Backoff {
  readonly min_ms: number
  readonly max_ms: number
}

const CALLS: Backoff = { min_ms: LIMITS.backoff_min_ms, max_ms: LIMITS.backoff_max_ms }

/** A deadline by the monotonic clock, which no administrator can set. */
export class Deadline {
  readonly #since_ms: number
  readonly #at_ms: number

  constructor(in_ms: number) {
    this.#since_ms = performance.now()
    this.#at_ms = this.#since_ms + in_ms
  }

  /** Since it began to run. */
  get elapsed_ms(): number {
    return performance.now() - this.#since_ms
  }

  get left_ms(): number {
    return Math.max(0, this.#at_ms - performance.now())
  }

  get passed(): boolean {
    return this.left_ms === 0
  }

  /** Waits before the next try. False when the deadline comes first: then there is no next try. */
  async backOff(tries: number): Promise<boolean> {
    const wait_ms = backoffMs(tries)
    if (wait_ms >= this.left_ms) return false
    await sleep(wait_ms)
    return true
  }
}

/** Waits for something, but no longer than so long. Whether it was done by then is for the caller to know. */
export async function atMost(max_ms: number, awaited: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(max_ms, LIMITS.timer_max_ms))
  })
  await Promise.race([awaited, enough])
  clearTimeout(timer)
}
