import { LIMITS } from '../limits.ts'
import type { Rule } from './options.ts'
import type { Take } from './takes.ts'

/** One window of a limit, as it is now. */
export interface Window {
  /** The name of the limiter. */
  readonly name: string
  readonly limit: number
  readonly per_ms: number
  readonly remaining: number
  /** When the window ends, and all points are there again. */
  readonly reset_ms: number
}

/** What a limiter says about one request. */
export type Verdict =
  | (Window & {
      readonly allowed: true
      /** False where the store could not tell, and the limiter allows then: nothing is known of the window. */
      readonly counted: boolean
    })
  | (Window & {
      readonly allowed: false
      readonly counted: boolean
      readonly retry_after_ms: number
    })

export function verdictOf(name: string, { points, per_ms }: Rule, take: Take): Verdict {
  const reset_ms = Math.ceil(take.reset_ms)
  const window = { name, limit: points, per_ms, reset_ms, counted: true }
  if (take.granted) return { ...window, allowed: true, remaining: Math.max(0, take.left) }
  return { ...window, allowed: false, remaining: 0, retry_after_ms: Math.max(1, reset_ms) }
}

/** Where the store could not tell. */
export function blindVerdict(name: string, { points, per_ms }: Rule, on_error: 'allow' | 'refuse'): Verdict {
  const window = { name, limit: points, per_ms, reset_ms: per_ms, counted: false }
  return on_error === 'allow'
    ? { ...window, allowed: true, remaining: points }
    : { ...window, allowed: false, remaining: 0, retry_after_ms: LIMITS.limit_pause_ms }
}

export function windowOf(
  name: string,
  { points, per_ms }: Rule,
  seen: { readonly remainingPoints: number; readonly msBeforeNext: number } | null,
): Window {
  const remaining = seen?.remainingPoints ?? points
  return { name, limit: points, per_ms, remaining, reset_ms: seen?.msBeforeNext ?? 0 }
}
