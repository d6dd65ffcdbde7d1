import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A failure of a test, or of a whole file. */
export interface Failure {
  readonly file: string
  readonly test?: string
}

/** What is run, and which files are not what they were. */
export interface Asked {
  readonly changed: readonly string[]
  readonly tests: readonly string[]
  /** The names of the tests that are run, as a regular expression. */
  readonly only?: string
}

export type Answer = { readonly failure: Failure | null } | { readonly error: string }

const LANE = fileURLToPath(new URL('lane.ts', import.meta.url))
const RUN_MAX_MS = 300_000

/** Runs tests of a copy of the project in a process that stays, on a server that no other process disturbs. */
export class Tester {
  readonly #copy: string
  readonly #databaseUrl: string
  #lane: { readonly process: ChildProcess; readonly config: string } | null = null

  constructor(copy: string, databaseUrl: string) {
    this.#copy = copy
    this.#databaseUrl = databaseUrl
  }

  /**
   * The first test that fails, or null. Throws where the tests could not be run, or took too long. A run may be spoilt by what
   * an earlier one has left in the process, so it is tried once more in a fresh one.
   */
  async firstFailure(config: string | undefined, asked: Asked): Promise<Failure | null> {
    let answer = await this.#ask(config ?? '', asked)
    if ('error' in answer) {
      await this.close()
      answer = await this.#ask(config ?? '', asked)
    }
    if ('error' in answer) throw new Error(answer.error)
    return answer.failure
  }

  /** The next run begins with a new process, and so with a new template of databases. */
  async close(): Promise<void> {
    const lane = this.#lane?.process
    this.#lane = null
    if (lane === undefined || lane.exitCode !== null) return
    const ended = once(lane, 'exit')
    if (lane.connected) lane.disconnect()
    const killer = setTimeout(() => lane.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(killer)
  }

  async #ask(config: string, asked: Asked): Promise<Answer> {
    const lane = await this.#open(config)
    lane.send(asked)
    return await this.#answer(lane)
  }

  async #open(config: string): Promise<ChildProcess> {
    if (this.#lane?.config === config) return this.#lane.process
    await this.close()
    const lane = fork(LANE, [config], {
      cwd: this.#copy,
      env: { ...process.env, DATABASE_URL: this.#databaseUrl, NODE_ENV: 'test' },
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    this.#lane = { process: lane, config }
    await this.#answer(lane)
    return lane
  }

  async #answer(lane: ChildProcess): Promise<Answer> {
    const waiting = new AbortController()
    const signal = AbortSignal.any([waiting.signal, AbortSignal.timeout(RUN_MAX_MS)])
    try {
      const ended = once(lane, 'exit', { signal }).then(([code]) => [{ error: `Vitest ended with ${code}.` }])
      const [answer] = (await Promise.race([once(lane, 'message', { signal }), ended])) as [Answer]
      return answer
    } catch (error) {
      await this.close()
      throw error
    } finally {
      waiting.abort()
    }
  }
}
