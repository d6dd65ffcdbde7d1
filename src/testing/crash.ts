import { writeSync } from 'node:fs'
import { OnlyonceError } from '../core/errors.ts'
import { refuseUnknown } from '../core/options.ts'
import { TESTING_LIMITS } from './limits.ts'

/** Called by the library at each named point where a crash would matter. Does nothing in production. */
export type CrashPoint = (point: string) => void

/** The n-th time that a point is reached, counted from 1. */
export interface CrashSite {
  readonly point: string
  readonly occurrence: number
}

/** A point that was reached, and how often. */
export interface ReachedPoint {
  readonly point: string
  readonly count: number
}

/** Names the site of the crash to the program: `point#occurrence`. */
export const CRASH_VARIABLE = 'ONLYONCE_CRASH_AT'
/** Stands in front of the sites that a program reports on its standard output. */
export const POINTS_PREFIX = 'onlyonce-points: '
/** Stands in front of the site on standard error just before the process dies there. */
export const CRASHED_PREFIX = 'onlyonce-crashed-at: '

/**
 * A crash point that kills its own process (SIGKILL: no handler, no flush, no farewell) the n-th time that
 * `point` is reached.
 *
 * @example
 * const once = onlyonce({ store, secret, crashPoint: crashAt({ point: 'before_commit', occurrence: 2 }) })
 */
export function crashAt(site: { readonly point: string; readonly occurrence?: number }): CrashPoint {
  refuseUnknown('crashAt()', site, { point: true, occurrence: true })
  const { point, occurrence = 1 } = site
  checkSite({ point, occurrence })
  let count = 0
  return function crash(reached) {
    if (reached !== point) return
    count += 1
    if (count === occurrence) killSelf({ point, occurrence })
  }
}

/**
 * The crash point that the environment asks for in ONLYONCE_CRASH_AT, such as `before_commit#2` or
 * `before_commit`; one that does nothing when the variable is not set.
 *
 * @example
 * const once = onlyonce({ store, secret, crashPoint: crashPointFromEnvironment() })
 */
export function crashPointFromEnvironment(env: NodeJS.ProcessEnv = process.env): CrashPoint {
  const text = env[CRASH_VARIABLE]
  return text === undefined || text === '' ? () => {} : crashAt(parseSite(text))
}

/**
 * Records which points are reached, and how often, in the order of their first time.
 *
 * @example
 * const recorder = recordPoints()
 * const once = onlyonce({ store, secret, crashPoint: recorder.hook })
 * await once.transaction(call, work)
 * recorder.points() // [{ point: 'before_commit', count: 1 }]
 */
export function recordPoints(): { readonly hook: CrashPoint; points(): ReachedPoint[] } {
  const counts = new Map<string, number>()
  return {
    hook(point) {
      if (!counts.has(point) && counts.size >= TESTING_LIMITS.pointsMax) {
        throw new OnlyonceError('option_invalid', {
          detail: `Crash points are names; ${point} is one too many.`,
        })
      }
      counts.set(point, (counts.get(point) ?? 0) + 1)
    },
    points: () => [...counts].map(([point, count]) => ({ point, count })),
  }
}

/**
 * The crash point for a program that `crashEverywhere` runs: crashes where the environment says so, and
 * otherwise prints the points that it reached, in one line, when the process exits.
 *
 * @example
 * // program.ts
 * const once = onlyonce({ store, secret, crashPoint: reportPoints() })
 */
export function reportPoints(env: NodeJS.ProcessEnv = process.env): CrashPoint {
  const recorder = recordPoints()
  const crash = crashPointFromEnvironment(env)
  process.once('exit', () => {
    process.stdout.write(`\n${POINTS_PREFIX}${JSON.stringify(recorder.points())}\n`)
  })
  return function report(point) {
    recorder.hook(point)
    crash(point)
  }
}

/** The reverse of what ONLYONCE_CRASH_AT is read with. */
export function formatSite(site: CrashSite): string {
  return `${site.point}#${site.occurrence}`
}

function parseSite(text: string): CrashSite {
  const mark = text.lastIndexOf('#')
  const site =
    mark === -1
      ? { point: text, occurrence: 1 }
      : { point: text.slice(0, mark), occurrence: Number(text.slice(mark + 1)) }
  return checkSite(site)
}

export function checkSite(site: CrashSite): CrashSite {
  if (site.point !== '' && Number.isSafeInteger(site.occurrence) && site.occurrence >= 1) return site
  const detail = `A crash site is a point and an occurrence from 1 on, as in before_commit#2, not ${formatSite(site)}.`
  throw new OnlyonceError('option_invalid', { detail })
}

function killSelf(site: CrashSite): never {
  try {
    // Synchronous, because nothing asynchronous gets a chance any more.
    writeSync(2, `\n${CRASHED_PREFIX}${formatSite(site)}\n`)
  } catch {
    // Standard error is not read, or it is full. Dying comes first.
  }
  process.kill(process.pid, 'SIGKILL')
  // The signal may take a moment to arrive. Not one more instruction of the program runs meanwhile.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  throw new Error('The process outlived SIGKILL.')
}
