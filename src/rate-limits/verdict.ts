import { LIMITS } from '../core/limits.ts'
import type { KnownWindows } from './known-windows.ts'
import type { Rule } from './options.ts'
import type { Take } from './takes.ts'

/** One window of a limit, as it is now. */
export interface Window {
  /** The name of the limiter. */
  readonly name: string
  readonly limit: number
  readonly perMs: number
  readonly remaining: number
  /** When the window ends, and all points are there again. */
  readonly resetMs: number
}

/** What a limiter says about one request. */
export type Verdict =
  | (Window & {
      readonly allowed: true
      /** False where the store could not tell, and the limiter allows then: it is counted by this process alone. */
      readonly counted: boolean
    })
  | (Window & {
      readonly allowed: false
      /** False where the store could not tell, and the limiter refuses then. */
      readonly counted: boolean
      readonly retryAfterMs: number
    })

export function verdictOf(name: string, { points, perMs }: Rule, take: Take): Verdict {
  const resetMs = Math.ceil(take.resetMs)
  const window = { name, limit: points, perMs, resetMs, counted: true }
  if (take.granted) return { ...window, allowed: true, remaining: Math.max(0, take.left) }
  return { ...window, allowed: false, remaining: 0, retryAfterMs: Math.max(1, resetMs) }
}

/** Where the store could not tell, and the limiter refuses then. */
export function blindRefusal(name: string, { points, perMs }: Rule): Verdict {
  const window = { name, limit: points, perMs, resetMs: perMs, counted: false }
  return { ...window, allowed: false, remaining: 0, retryAfterMs: LIMITS.limitPauseMs }
}

/**
 * Where the store could not tell, and the limiter allows then: each rule with what this process knows of its window. It refuses what does
 * not fit in one of them, which it has counted itself.
 */
export function blindVerdict(
  name: string,
  lanes: readonly { readonly rule: Rule; readonly known: KnownWindows }[],
  key: string,
  points: number,
): Verdict {
  const looks = lanes.map(({ rule, known }) => ({ rule, take: known.look(key, points) }))
  const full = looks.find(({ take }) => !take.granted)
  if (full !== undefined) return verdictOf(name, full.rule, full.take)
  for (const { known } of lanes) known.take(key, points)
  const [least] = looks.toSorted((a, b) => a.take.left - b.take.left)
  return { ...verdictOf(name, least!.rule, least!.take), counted: false }
}

export function windowOf(
  name: string,
  { points, perMs }: Rule,
  seen: { readonly remainingPoints: number; readonly msBeforeNext: number } | null,
): Window {
  const remaining = seen?.remainingPoints ?? points
  return { name, limit: points, perMs, remaining, resetMs: seen?.msBeforeNext ?? 0 }
}
