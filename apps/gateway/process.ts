import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { readJournal } from './journal.ts'
import {
  API_KEY,
  argumentsOf,
  type Environment,
  environmentOf,
  type GatewayOptions,
  PORT_TAKEN,
} from './options.ts'
import type { FaultRule, GatewayState, JournalEntry, JournalLine, SeenRequest } from './wire.ts'

const PROGRAM = fileURLToPath(new URL('./program.ts', import.meta.url))
/**
 * Found from here: the process that starts a gateway may stand in another folder. Found when it is needed: a service in production has no tsx,
 * and starts no gateway.
 */
const findTsx = () => pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
const HOST = '127.0.0.1'
/** Below the ports that systems give to connections by themselves: none of them takes it while the gateway is away. */
const PORTS = [15_000, 30_000] as const
const STARTS_MAX = 5

/** A gateway in a process of its own. */
export interface GatewayProcess {
  /** The same after a restart, as are host and port. */
  readonly url: string
  readonly host: string
  readonly port: number
  readonly apiKey: string
  /** Opens `/_sandbox/…`. */
  readonly controlToken: string
  /** Another one after a restart. */
  readonly pid: number
  /** What it has moved, read from its file: also when it is dead. */
  journal(): Promise<JournalEntry[]>
  /** The requests that came with a key, in order, whatever became of them. */
  requests(key: string): Promise<SeenRequest[]>
  state(): Promise<GatewayState>
  /** Tells it to misbehave. */
  fault(...rules: readonly FaultRule[]): Promise<void>
  /** Takes all faults back. What is held stays held. */
  behave(): Promise<void>
  /** Lets held requests go on: those with a key, or all. */
  release(key?: string): Promise<void>
  /** Puts its clock forward, and so what waits for it. */
  advance(ms: number): Promise<void>
  /** Starts it again with the same journal and clock, and without faults; kills it first if it lives. */
  restart(): Promise<void>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** Resolves when it is gone, also where another process ended it. */
  ended(): Promise<void>
  /** Ends it, with time for what it is doing; removes its folder if nobody named one. */
  stop(): Promise<void>
}

/**
 * Starts a gateway. It ends with this process at the latest.
 *
 * @example
 * const gateway = await startGateway({ webhook: { url, secret } })
 * const stripe = new Stripe(gateway.apiKey, { host: gateway.host, port: gateway.port, protocol: 'http', maxNetworkRetries: 0 })
 * await gateway.fault({ fault: 'lose_after', key })
 */
export async function startGateway(options: GatewayOptions = {}): Promise<GatewayProcess> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'onlyonce-gateway-')))
  const controlToken = options.controlToken ?? randomBytes(24).toString('base64url')
  const env = environmentOf({ ...options, controlToken })
  const program = options.program === undefined ? ['--import', findTsx(), PROGRAM] : [options.program]
  const startAt = (port: number) => start([...program, ...argumentsOf(options, folder, port)], env)
  const started =
    options.port === undefined
      ? await startAnywhere(startAt)
      : { port: options.port, child: await startAt(options.port) }
  const { port } = started
  let { child } = started
  const url = `http://${HOST}:${port}`
  const tell = <Answer>(method: string, command: string, body?: object) =>
    ask<Answer>(url, controlToken, method, command, body)
  const isGone = () => child.exitCode !== null || child.signalCode !== null
  const ended = async () => {
    if (!isGone()) await once(child, 'exit')
  }
  const kill = async () => {
    child.kill('SIGKILL')
    await ended()
  }
  return {
    url,
    host: HOST,
    port,
    apiKey: options.apiKey ?? API_KEY,
    controlToken,
    get pid() {
      return child.pid!
    },
    async journal() {
      const lines = readJournal<JournalLine>(join(folder, 'journal.jsonl'))
      return lines.filter((line): line is JournalEntry => line.kind !== 'refusal')
    },
    requests: (key) => tell('GET', `requests?key=${encodeURIComponent(key)}`),
    state: () => tell('GET', 'state'),
    fault: (...rules) => tell('POST', 'faults', rules),
    behave: () => tell('DELETE', 'faults'),
    release: (key) => tell('POST', 'release', { key }),
    advance: (advanceMs) => tell('POST', 'clock', { advance_ms: advanceMs }),
    async restart() {
      await kill()
      child = await startAt(port)
    },
    kill,
    ended,
    async stop() {
      child.kill('SIGTERM')
      await ended()
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true })
    },
  }
}

async function startAnywhere(
  startAt: (port: number) => Promise<ChildProcess>,
): Promise<{ port: number; child: ChildProcess }> {
  for (let tries = 1; ; tries += 1) {
    const port = randomInt(...PORTS)
    try {
      return { port, child: await startAt(port) }
    } catch (error) {
      const isTaken = error instanceof NotStarted && error.exitCode === PORT_TAKEN
      if (!isTaken || tries === STARTS_MAX) throw error
    }
  }
}

async function start(args: readonly string[], env: Environment): Promise<ChildProcess> {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  // Whoever writes to a gateway that has just died must not die of it.
  child.stdin!.on('error', () => {})
  const lines = createInterface({ input: child.stdout! })
  await new Promise<void>((resolve, reject) => {
    lines.once('line', () => resolve())
    child.once('exit', (exitCode) => reject(new NotStarted(exitCode)))
  })
  return child
}

/** Why is on its standard error, which is ours. */
export class NotStarted extends Error {
  readonly exitCode: number | null

  constructor(exitCode: number | null) {
    super(`The gateway did not start: it ended with ${exitCode}.`)
    this.exitCode = exitCode
  }
}

async function ask<Answer>(
  url: string,
  controlToken: string,
  method: string,
  command: string,
  body?: object,
): Promise<Answer> {
  const response = await fetch(`${url}/_sandbox/${command}`, {
    method,
    headers: { authorization: `Bearer ${controlToken}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as Answer
}
