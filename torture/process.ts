import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { ProcessLife } from './judge/history.ts'

const OUTPUT_MAX = 400_000
const READY_MAX_MS = 60_000
const RESTART_PAUSE_MS = 300
const LATE_END_MS = 8_000

export interface ProgramOptions {
  readonly name: string
  /** What Node.js runs; asked at every start, so that another version can be started. */
  readonly args: () => readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Its first line of this form says that it is ready. */
  readonly ready: RegExp
}

/** A process that is killed, stopped and started again, and whose every life is noted for the judge. */
export class Program {
  readonly name: string
  readonly lives: ProcessLife[] = []
  readonly #options: ProgramOptions
  #child: ChildProcess | null = null
  #output = ''
  #samples: { rssMb: number; descriptors: number }[] = []
  #endedByDriver = false
  /** How many faults at present tell it to end itself. */
  #mayEnd = 0
  #closed = false

  constructor(options: ProgramOptions) {
    this.name = options.name
    this.#options = options
  }

  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  get alive(): boolean {
    return this.#child !== null
  }

  /** Starts it and waits until it is ready, or for a bounded time: while the database is away it may wait for it. */
  async start(): Promise<void> {
    if (this.#child !== null || this.#closed) return
    const { args, env, ready } = this.#options
    const child = spawn(process.execPath, args(), {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child = child
    this.#output = ''
    this.#samples = []
    this.#endedByDriver = false
    child.stdin?.on('error', () => {})
    child.once('exit', () => this.#over(child))
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, READY_MAX_MS)
      const finish = () => {
        clearTimeout(timer)
        resolve()
      }
      const read = (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_MAX)
        if (ready.test(this.#output)) finish()
      }
      for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', read)
      child.once('exit', finish)
    })
  }

  /** Sends a signal that ends it, and waits until it is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM', maxMs = 40_000): Promise<void> {
    const child = this.#child
    if (child === null) return
    this.#endedByDriver = true
    const gone = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), maxMs)
    await gone
    clearTimeout(timer)
  }

  /**
   * It is told to end itself at some moment: until the function that is given has been called, and for a while after, that is
   * the driver's doing. A request that was under way by then may still do it, after a delay that it was given too.
   */
  allowEnd(): () => void {
    this.#mayEnd += 1
    return () => {
      setTimeout(() => {
        this.#mayEnd -= 1
      }, LATE_END_MS).unref()
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  sample(): void {
    const { pid } = this
    if (pid === null) return
    try {
      const rssKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
      this.#samples.push({
        rssMb: Math.round(rssKb / 1_024),
        descriptors: readdirSync(`/proc/${pid}/fd`).length,
      })
    } catch {
      // It ended in this moment.
    }
  }

  /** The run is over: it is ended for good. */
  async close(): Promise<void> {
    this.#closed = true
    const child = this.#child
    if (child === null) return
    this.lives.push(this.#life('alive'))
    this.#child = null
    child.kill('SIGCONT')
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  #over(child: ChildProcess): void {
    if (this.#child !== child) return
    const byDriver = this.#endedByDriver || this.#mayEnd > 0
    this.lives.push(this.#life(byDriver ? 'by_driver' : 'by_itself'))
    this.#child = null
    // A supervisor of the field restarts what ended by itself; so does the driver, and the judge hears of it.
    if (!this.#endedByDriver && !this.#closed) setTimeout(() => void this.start(), RESTART_PAUSE_MS).unref()
  }

  #life(end: ProcessLife['end']): ProcessLife {
    return { name: this.name, end, output: this.#output, samples: this.#samples }
  }
}
