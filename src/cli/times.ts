/** Durations and times, as a person writes and reads them. */
import { usage } from './exit.ts'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * A duration with its unit, in milliseconds.
 *
 * @example
 * readDuration('--older-than', '10m') // 600000
 */
export function readDuration(name: string, text: string): number {
  const found = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text)
  if (found === null) throw usage(`${name} is a number with its unit: 500ms, 90s, 10m, 24h or 7d.`)
  return Number(found[1]) * UNITS[found[2]!]!
}

/** A time with its zone, in milliseconds since the epoch. */
export function readTime(name: string, text: string): number {
  const time = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  if (Number.isNaN(time)) {
    throw usage(
      `${name} is a day or a time with its zone: 2026-11-14 (from midnight, UTC) or 2026-11-14T09:30:00Z.`,
    )
  }
  return time
}

/** A time of the database, which is milliseconds since the epoch. */
export function showTime(atMs: number | null): string {
  return atMs === null ? '' : new Date(atMs).toISOString()
}

/**
 * How long something took, in the two largest units.
 *
 * @example
 * showDuration(93_000) // '1m 33s'
 */
export function showDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`
  const seconds = Math.floor(ms / 1_000)
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0)
  return shown.map(([count, unit]) => `${count}${unit}`).join(' ')
}

/** By this process, to be compared with the database's. Nothing is decided by it. */
export function clockMs(): number {
  return Date.now()
}
