import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./program.ts', import.meta.url))
const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href

/**
 * How long a payment belongs to a server that was killed. The default of 30 s is for servers that may be slow; the visitor of a page would wait
 * for it.
 */
const LEASE_MS = 3_000
const GATEWAY_TIMEOUT_MS = 2_000
const OVERLOAD_LAG_MS = 10_000

export interface SecondServerOptions {
  readonly folder: string
  readonly gatewayUrl: string
}

/** Another server of the same service, on the same database and processor, which can be killed while the first one serves the page. */
export class SecondServer {
  readonly #options: SecondServerOptions
  #child: ChildProcess | null = null
  #starting: Promise<void> | null = null
  #url: string | null = null
  #closed = false

  constructor(options: SecondServerOptions) {
    this.#options = options
  }

  /** Where it listens; null while it is dead. */
  get url(): string | null {
    return this.#url
  }

  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    if (this.#url !== null || this.#closed) return
    this.#starting ??= this.#spawn().finally(() => {
      this.#starting = null
    })
    await this.#starting
  }

  /** SIGKILL: no handler of the process runs. Resolves when it is gone. */
  async kill(): Promise<void> {
    const child = this.#child
    this.#url = null
    if (child === null) return
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#starting?.catch(() => {})
    await this.kill()
  }

  async #spawn(): Promise<void> {
    const { folder, gatewayUrl } = this.#options
    const child = spawn(process.execPath, ['--import', TSX, PROGRAM, '--role', 'api'], {
      env: {
        ...process.env,
        DATA_FOLDER: folder,
        GATEWAY_URL: gatewayUrl,
        DEMO_ACCOUNT: '1',
        HOST: '127.0.0.1',
        PORT: '0',
        LEASE_MS: `${LEASE_MS}`,
        GATEWAY_TIMEOUT_MS: `${GATEWAY_TIMEOUT_MS}`,
        // A process that has just started is late. That is no overload here.
        OVERLOAD_LAG_MS: `${OVERLOAD_LAG_MS}`,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#child = child
    // A write to a process that has just died must not end this one.
    child.stdin.on('error', () => {})
    child.once('exit', () => {
      if (this.#child !== child) return
      this.#child = null
      this.#url = null
    })
    const url = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const [, found] = /^Ready: (http:\S+)/.exec(line) ?? []
        if (found !== undefined) resolve(found)
      })
      child.once('error', reject)
      child.once('exit', () => reject(new Error('The second server did not start.')))
    })
    if (this.#closed) child.kill('SIGKILL')
    else this.#url = url
  }
}
