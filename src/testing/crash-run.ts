import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { CRASH_VARIABLE, type CrashSite, checkSite, formatSite } from './crash.ts'
import { TESTING_LIMITS } from './limits.ts'

/** A Node.js program to run in a process of its own. */
export interface ProgramOptions {
  /**
   * A file, or the URL of one. TypeScript runs through `tsx`, which the working directory must be able to
   * find.
   */
  readonly program: string | URL
  /** @default [] */
  readonly args?: readonly string[]
  /**
   * Added to the environment of this process.
   *
   * @default {}
   */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** @default that of this process */
  readonly cwd?: string
  /**
   * The process is killed after this time.
   *
   * @default 30_000
   */
  readonly timeoutMs?: number
}

export const PROGRAM_NAMES: OptionNames<ProgramOptions> = {
  program: true,
  args: true,
  env: true,
  cwd: true,
  timeoutMs: true,
}

/** How a program ended. */
export interface ProgramResult {
  /** `killed`: by a signal, as crash points do; `exited`: by itself; `timedOut`: it had to be killed. */
  readonly ended: 'killed' | 'exited' | 'timed_out'
  readonly signal: NodeJS.Signals | null
  readonly code: number | null
  /** The last part of its output, up to one MiB. */
  readonly stdout: string
  readonly stderr: string
  readonly pid: number
}

/**
 * Runs a program with a crash at the n-th time that it reaches `point`, and waits for its end. The program
 * takes the site from its environment, through `crashPointFromEnvironment()` or `reportPoints()`.
 *
 * @example
 * const result = await runUntilCrash({ program: 'test/crash/transfer.ts', point: 'before_commit' })
 * expect(result.ended).toBe('killed')
 */
export function runUntilCrash(
  options: ProgramOptions & { readonly point: string; readonly occurrence?: number },
): Promise<ProgramResult> {
  refuseUnknown('runUntilCrash()', options, { ...PROGRAM_NAMES, point: true, occurrence: true })
  const { point, occurrence = 1, ...programOptions } = options
  return runProgram(programOptions, { point, occurrence })
}

/** A test run that is given up must not leave its programs behind. One listener, however many programs run. */
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Runs a program to its end, with a crash at the site if there is one. */
export async function runProgram(options: ProgramOptions, site: CrashSite | null): Promise<ProgramResult> {
  const { timeoutMs = TESTING_LIMITS.runMaxMs } = options
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw new OnlyonceError('option_invalid', { detail: 'timeoutMs is a positive number of milliseconds.' })
  }
  const child = await start(options, site)
  const stdout = collectTail(child.stdout!)
  const stderr = collectTail(child.stderr!)
  const kill = () => child.kill('SIGKILL')
  running.add(child)
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    kill()
  }, timeoutMs)
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    const ended = timedOut ? 'timed_out' : signal === null ? 'exited' : 'killed'
    await drainOutput(child)
    return { ended, signal, code, stdout: stdout(), stderr: stderr(), pid: child.pid! }
  } finally {
    clearTimeout(timer)
    running.delete(child)
  }
}

async function start(options: ProgramOptions, site: CrashSite | null): Promise<ChildProcess> {
  const { program, args = [], env = {}, cwd } = options
  const url = program instanceof URL || program.startsWith('file:')
  const file = url ? fileURLToPath(program) : (program as string)
  const loader = /\.[cm]?tsx?$/.test(file) ? ['--import', 'tsx'] : []
  const crash = { [CRASH_VARIABLE]: site === null ? undefined : formatSite(checkSite(site)) }
  const child = spawn(process.execPath, [...loader, file, ...args], {
    env: { ...process.env, ...env, ...crash },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })
  await once(child, 'spawn')
  return child
}

/** Reads a stream and keeps the end of it. */
function collectTail(stream: Readable): () => string {
  let chunks: Buffer[] = []
  let sizeBytes = 0
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    sizeBytes += chunk.length
    // Twice the bound before anything is copied: otherwise each chunk of a long output would copy it all.
    if (sizeBytes > 2 * TESTING_LIMITS.outputSizeMaxBytes) {
      chunks = [tailOf(chunks)]
      sizeBytes = TESTING_LIMITS.outputSizeMaxBytes
    }
  })
  return () => tailOf(chunks).toString('utf8')
}

function tailOf(chunks: readonly Buffer[]): Buffer {
  return Buffer.concat(chunks).subarray(-TESTING_LIMITS.outputSizeMaxBytes)
}

/**
 * Waits for the rest of the output, but not for ever: a child of the program's own may hold the pipe open.
 */
async function drainOutput(child: ChildProcess): Promise<void> {
  const streams = [child.stdout!, child.stderr!].filter((stream) => !stream.closed)
  const timer = setTimeout(() => {
    for (const stream of streams) stream.destroy()
  }, TESTING_LIMITS.outputWaitMaxMs)
  try {
    await Promise.all(streams.map((stream) => once(stream, 'close')))
  } finally {
    clearTimeout(timer)
  }
}
