import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS } from './limits.ts'

/**
 * The one place that decides how long to wait between tries: exponential, with full jitter, so that callers
 * who collided do not meet again, and bounded.
 */
export function backoffMs(
  tries: number,
  random: () => number = Math.random,
  { minMs, maxMs }: Backoff = CALLS,
): number {
  const ceiling = Math.max(minMs, Math.min(maxMs, minMs * 2 ** Math.min(tries, 20)))
  return minMs + random() * (ceiling - minMs)
}

export interface Backoff {
  readonly minMs: number
  readonly maxMs: number
}

const CALLS: Backoff = { minMs: LIMITS.backoffMinMs, maxMs: LIMITS.backoffMaxMs }

/** A deadline by the monotonic clock, which no administrator can set. */
export class Deadline {
  readonly #sinceMs: number
  readonly #atMs: number

  constructor(inMs: number) {
    this.#sinceMs = performance.now()
    this.#atMs = this.#sinceMs + inMs
  }

  /** Since it began to run. */
  get elapsedMs(): number {
    return performance.now() - this.#sinceMs
  }

  get leftMs(): number {
    return Math.max(0, this.#atMs - performance.now())
  }

  get passed(): boolean {
    return this.leftMs === 0
  }

  /** Waits before the next try. False when the deadline comes first: then there is no next try. */
  async backOff(tries: number): Promise<boolean> {
    const waitMs = backoffMs(tries)
    if (waitMs >= this.leftMs) return false
    await sleep(waitMs)
    return true
  }
}

/** Waits for something, but no longer than so long. Whether it was done by then is for the caller to know. */
export async function atMost(maxMs: number, awaited: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(maxMs, LIMITS.timerMaxMs))
  })
  await Promise.race([awaited, enough])
  clearTimeout(timer)
}
