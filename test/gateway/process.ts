import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { compiled } from '../setup/compiled.ts'
import { readJournal } from './journal.ts'
import type { Control, Entry, GatewayOptions, State } from './wire.ts'

const PROGRAM = new URL('./program.ts', import.meta.url)
/** Below the ports that systems give to connections by themselves: none of them takes it while the gateway is away. */
const PORTS = [15_000, 30_000] as const
const STARTS_MAX = 5

/** A gateway in a process of its own, as a test sees it. */
export interface Gateway {
  /** The same after a restart. */
  readonly url: string
  /** What it has done, read from its file: also when it is dead. */
  journal(): Promise<Entry[]>
  /** Tells it to misbehave, or to stop doing so. Answers with its state. */
  control(control: Control): Promise<State>
  state(): Promise<State>
  /** Puts its clock forward. */
  advance(ms: number): Promise<void>
  /** Starts it again with the same journal and clock, and without faults; kills it first if it lives. */
  restart(): Promise<void>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** Resolves when it is gone, by whatever hand. */
  ended(): Promise<void>
  /** Ends it and removes its journal. */
  stop(): Promise<void>
}

/**
 * Starts a gateway. It ends with this process at the latest.
 *
 * @example
 * const gateway = await startGateway({ keyLifetimeMs: 60_000 })
 * await gateway.control({ fault: 'lose', at: 'after', key })
 */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-gateway-'))
  const journal = join(folder, 'journal.jsonl')
  let advancedMs = 0
  const startAt = (port: number) => start(JSON.stringify({ ...options, journal, advancedMs }), port)
  let { child, port } = await startAnywhere(startAt)
  const url = `http://127.0.0.1:${port}`
  const ended = async () => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  const kill = async () => {
    child.kill('SIGKILL')
    await ended()
  }
  const control = (control: Control) => ask(`${url}/control`, control)
  return {
    url,
    journal: async () => readJournal(journal),
    control,
    state: () => ask(`${url}/control`),
    async advance(ms) {
      await control({ advance_ms: ms })
      advancedMs += ms
    },
    async restart() {
      await kill()
      child = (await startAt(port)).child
    },
    kill,
    ended,
    async stop() {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

interface Started {
  readonly child: ChildProcess
  readonly port: number
}

async function startAnywhere(startAt: (port: number) => Promise<Started>): Promise<Started> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await startAt(randomInt(...PORTS))
    } catch (error) {
      if (tries === STARTS_MAX) throw error
    }
  }
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

async function start(options: string, port: number): Promise<Started> {
  const child = spawn(process.execPath, [compiled(PROGRAM)], {
    env: { ...process.env, GATEWAY_OPTIONS: options, GATEWAY_PORT: `${port}` },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  // Whoever writes to a gateway that has just died must not die of it.
  child.stdin!.on('error', () => {})
  const lines = createInterface({ input: child.stdout! })
  const line = await new Promise<string>((resolve, reject) => {
    lines.once('line', resolve)
    lines.once('close', () => reject(new Error('The gateway did not start.')))
  })
  return { child, port: Number(line) }
}

async function ask(url: string, body?: Control): Promise<State> {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as State
}
