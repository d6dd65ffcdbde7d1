import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { compiled } from '../../../test/setup/compiled.ts'
import type { FreshDatabase } from '../../../test/setup/database.ts'
import { type Answer, type Ask, send, TEST_OPS_TOKEN, TEST_SECRET, UNLIMITED } from './service.ts'

const SOURCE = new URL('../main.ts', import.meta.url)

export interface ProcessOptions {
  readonly database: Pick<FreshDatabase, 'url'>
  readonly role?: 'api' | 'worker' | 'all'
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Node's own arguments, before the program. */
  readonly nodeArgs?: readonly string[]
  /** The program's, behind its role. */
  readonly args?: readonly string[]
}

/** A process that was started, ready or not. */
export interface SpawnedService {
  readonly child: ChildProcess
  /** What it has written so far. */
  output(): string
  /** Resolves when it is gone, by whatever hand. */
  ended(): Promise<void>
  end(signal: NodeJS.Signals): Promise<void>
}

/** The service as a process of its own, as a test sees it. */
export interface ServiceProcess extends Pick<SpawnedService, 'child' | 'output' | 'ended'> {
  /** Where it listens; empty for a worker. */
  readonly url: string
  ask(path: string, options?: Ask): Promise<Answer>
  post(path: string, body: unknown, options?: Ask): Promise<Answer>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** SIGTERM; resolves with its exit code when it has drained. */
  stop(): Promise<number | null>
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/**
 * Starts main.ts on a database and waits until it is ready. It is killed with the test, or with the file.
 *
 * @example
 * const api = await startServiceProcess({ database, role: 'api', env: { GATEWAY_URL: gateway.url } })
 * await api.post('/v1/payments', body, { api_key, key })
 */
export async function startServiceProcess(options: ProcessOptions): Promise<ServiceProcess> {
  const { child, output, ended, end } = spawnService(options)
  const url = await untilReady(child, output)
  const ask = (path: string, given: Ask = {}) => send(url, path, given)
  return {
    child,
    url,
    output,
    ask,
    post: (path, body, given) => ask(path, { method: 'POST', body, ...given }),
    kill: () => end('SIGKILL'),
    async stop() {
      await end('SIGTERM')
      return child.exitCode
    },
    ended,
  }
}

/** Starts main.ts and waits for nothing. */
export function spawnService(options: ProcessOptions): SpawnedService {
  const { database, role = 'all', env = {}, nodeArgs = [], args = [] } = options
  // Compiled it starts in a third of the processor time. One that starts a sandbox of its own finds the sandbox beside its sources.
  const file = env.GATEWAY_URL === undefined ? ['--import', 'tsx', fileURLToPath(SOURCE)] : [compiled(SOURCE)]
  const program = [...nodeArgs, ...file, '--role', role, ...args]
  const child = spawn(process.execPath, program, {
    env: {
      ...process.env,
      DATABASE_URL: database.url,
      ONLYONCE_SECRET: TEST_SECRET,
      OPS_TOKEN: TEST_OPS_TOKEN,
      LOG_LEVEL: 'error',
      ...UNLIMITED,
      ...(role !== 'worker' && { PORT: '0' }),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  const ended = async () => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await ended()
  }
  cleanUpLater(() => end('SIGKILL'))
  return { child, output: () => output, ended, end }
}

/** Its first line of this form tells that it is there. */
const READY = /^Ready(?:: (http:\S+))?/

async function untilReady(child: ChildProcess, output: () => string): Promise<string> {
  const lines = createInterface({ input: child.stdout! })
  return await new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const found = READY.exec(line)
      if (found !== null) resolve(found[1] ?? '')
    })
    child.once('exit', () => reject(new Error(`The service did not start.\n${output()}`)))
  })
}
