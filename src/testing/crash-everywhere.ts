import { AssertionError } from 'node:assert'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { CRASHED_PREFIX, type CrashSite, formatSite, POINTS_PREFIX, type ReachedPoint } from './crash.ts'
import { PROGRAM_NAMES, type ProgramOptions, type ProgramResult, runProgram } from './crash-run.ts'
import { TESTING_LIMITS } from './limits.ts'

/** What to run, what it must reach, and how to check what a crash has left behind. */
export interface CrashEverywhereOptions extends Omit<ProgramOptions, 'env'> {
  /**
   * Points that the program must reach; one that it does not is an error.
   *
   * @default none
   */
  readonly points?: readonly string[]
  /**
   * Crash only at these points; everywhere if not given.
   *
   * @default all points
   */
  readonly crashAt?: readonly string[]
  /**
   * The environment of every run, or of one: a run of its own database needs a variable of its own.
   *
   * @default {}
   */
  readonly runEnv?: ProgramOptions['env'] | ((site: CrashSite | null) => ProgramOptions['env'])
  /**
   * Of a point that is reached more often, only the first so many occurrences are crashed at. By point where some of
   * them are reached more or less often by chance.
   *
   * @default 20
   */
  readonly occurrencesMax?: number | ((point: string) => number)
  /**
   * Checks the outcome of each run, one after the other; `site` is null for the first run, which has no
   * crash.
   *
   * @default nothing is checked
   */
  readonly afterEach?: (site: CrashSite | null, result: ProgramResult) => unknown
}

const { env: _, ...PROGRAM } = PROGRAM_NAMES
const NAMES: OptionNames<CrashEverywhereOptions> = {
  ...PROGRAM,
  points: true,
  crashAt: true,
  runEnv: true,
  occurrencesMax: true,
  afterEach: true,
}

/** What `crashEverywhere` has done. */
export interface CrashTable {
  /** What the program reaches without a crash, in order. */
  readonly reached: readonly ReachedPoint[]
  /** Every crash, in the order in which it was made. */
  readonly crashes: readonly (CrashSite & { readonly result: ProgramResult })[]
}

/**
 * Runs a program once to learn which crash points it reaches, and then once for every one of them, each time
 * killed there. The program must take its crash point from `reportPoints()`.
 *
 * @example
 * const table = await crashEverywhere({
 *   program: 'test/crash/transfer.ts',
 *   points: ['before_commit', 'after_commit'],
 *   afterEach: async (site) => expect(await countTransfers(`crash-${site?.point}`)).toBeLessThanOrEqual(1),
 * })
 */
export async function crashEverywhere(options: CrashEverywhereOptions): Promise<CrashTable> {
  refuseUnknown('crashEverywhere()', options, NAMES)
  const reached = readPoints(await runOne(options, null))
  const missed = (options.points ?? []).filter((point) => !reached.some((entry) => entry.point === point))
  if (missed.length > 0) fail(`The program never reaches ${missed.join(', ')}.`)
  if (reached.length === 0) fail('The program reaches no crash point at all, so nothing would be tested.')

  const crashes: (CrashSite & { result: ProgramResult })[] = []
  const { occurrencesMax = TESTING_LIMITS.occurrencesMax } = options
  for (const { point, count } of reached) {
    if (options.crashAt !== undefined && !options.crashAt.includes(point)) continue
    const max = typeof occurrencesMax === 'number' ? occurrencesMax : occurrencesMax(point)
    for (let occurrence = 1; occurrence <= Math.min(count, max); occurrence++) {
      const result = await runOne(options, { point, occurrence })
      crashes.push({ point, occurrence, result })
    }
  }
  return { reached, crashes }
}

async function runOne(options: CrashEverywhereOptions, site: CrashSite | null): Promise<ProgramResult> {
  const { points: _, crashAt: __, runEnv, occurrencesMax: ___, afterEach, ...programOptions } = options
  const env = typeof runEnv === 'function' ? runEnv(site) : runEnv
  const result = await runProgram({ ...programOptions, ...(env === undefined ? {} : { env }) }, site)
  if (site === null) checkExited(result)
  else checkCrashed(site, result)
  await afterEach?.(site, result)
  return result
}

function checkExited(result: ProgramResult): void {
  if (result.ended === 'exited' && result.code === 0) return
  fail(`Without a crash the program must exit with 0, but ${describe(result)}`)
}

/** SIGKILL alone proves nothing, the system kills too when memory runs out; the last words tell the site. */
function checkCrashed(site: CrashSite, result: ProgramResult): void {
  const crashedThere = result.stderr.includes(`${CRASHED_PREFIX}${formatSite(site)}\n`)
  if (result.ended === 'killed' && crashedThere) return
  fail(`The program was to crash at ${formatSite(site)}, but ${describe(result)}`)
}

function readPoints(result: ProgramResult): ReachedPoint[] {
  const line = result.stdout
    .split('\n')
    .filter((text) => text.startsWith(POINTS_PREFIX))
    .at(-1)
  if (line === undefined)
    fail('The program did not report its points. Let its crash point be reportPoints().')
  return JSON.parse(line.slice(POINTS_PREFIX.length)) as ReachedPoint[]
}

function describe(result: ProgramResult): string {
  const { ended, code, signal, stdout, stderr } = result
  return `it ended thus: ${ended}, code ${code}, signal ${signal}.\n${stderr.slice(-4_000)}\n${stdout.slice(-1_000)}`
}

function fail(message: string): never {
  throw new AssertionError({ message })
}
