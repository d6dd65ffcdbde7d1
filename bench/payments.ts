import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once as occurs } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type GatewayProcess, startGateway } from '../apps/gateway/index.ts'
import { DEMO_API_KEY } from '../apps/payments/accounts/index.ts'
import { Connections } from './http-client.ts'
import { measureLatencies } from './latencies.ts'
import { ratioOf, type Side, spreadOf } from './measure.ts'
import type { Report } from './report.ts'
import type { Bench } from './run.ts'

const CONNECTIONS = 64
const PROGRAM = fileURLToPath(new URL('../apps/payments/main.ts', import.meta.url))
const BODY = JSON.stringify({ amount: 1_200, currency: 'EUR', payment_method: 'pm_card_visa' })

/**
 * Payments through the whole stack: authentication, limits, the operation with its two commits, the sandbox processor with a journal
 * that it syncs, the ledger, and a worker that takes the events out meanwhile. One server process, and two.
 */
export async function payments({ url, rounds, roundMs }: Bench): Promise<Report> {
  const gateway = await startGateway()
  const servers: Server[] = []
  const started: Program[] = []
  try {
    for (let i = 0; i < 2; i += 1) {
      const program = await startProgram(url, gateway, 'api')
      started.push(program)
      servers.push({ to: await Connections.open(program.port, CONNECTIONS) })
    }
    started.push(await startProgram(url, gateway, 'worker'))
    const [first, second] = servers as [Server, Server]
    let turn = 0
    const pay = (server: Server) => server.to.send(requestOf(randomUUID()), 201)
    const sides: Record<string, Side> = {
      one_server: () => pay(first),
      two_servers: () => {
        turn += 1
        return pay(turn % 2 === 0 ? first : second)
      },
    }
    const load = { callers: CONNECTIONS, roundMs, rounds }
    const { rates, p99 } = await measureLatencies(sides, load)
    return reportOf(rates, p99, { rounds, roundMs })
  } finally {
    for (const { to } of servers) to.close()
    for (const program of started) await program.stop()
    await gateway.stop()
  }
}

type Measured = Record<string, number[]>

function reportOf(rates: Measured, p99: Measured, { rounds, roundMs }: Omit<Bench, 'url'>): Report {
  const latencies = Object.entries(p99).map(([name, ms]) => [`p99_ms ${name}`, spreadOf(ms)])
  const speeds = Object.entries(rates).map(([name, values]) => [name, spreadOf(values)])
  return {
    suite: 'payments',
    rates: Object.fromEntries([...speeds, ...latencies]),
    ratios: {
      'two_servers/one_server': ratioOf(rates, 'two_servers', 'one_server'),
      'p99 one_server/two_servers': ratioOf(p99, 'one_server', 'two_servers'),
    },
    aims: {},
    commitsPerRequest: {},
    notes: [
      `POST /v1/payments, ${CONNECTIONS} connections, ${rounds} rounds of ${roundMs} ms a side; client, servers, a worker, the sandbox processor and PostgreSQL on one machine, all durable.`,
    ],
  }
}

interface Server {
  readonly to: Connections
}

interface Program {
  readonly port: number
  stop(): Promise<void>
}

/** Limits are out of the way: all payments here are of one account and one card. */
async function startProgram(url: string, gateway: GatewayProcess, role: 'api' | 'worker'): Promise<Program> {
  const program = spawn(process.execPath, ['--import', 'tsx', PROGRAM, '--role', role], {
    env: {
      ...process.env,
      DATABASE_URL: url,
      DATABASE_POOL_SIZE: '16',
      ONLYONCE_SECRET: 'a secret of the benchmark, which everybody can read',
      GATEWAY_URL: gateway.url,
      DEMO_ACCOUNT: '1',
      LOG_LEVEL: 'error',
      RATE_LIMIT_TEST: '1000000',
      VELOCITY_CARD: '1000000/60',
      VELOCITY_ACCOUNT: '1000000/60',
      OVERLOAD_LAG_MS: '60000',
      OVERLOAD_QUEUE_MS: '60000',
      ...(role === 'api' && { PORT: '0' }),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await portOf(program)
  return {
    port,
    async stop() {
      program.kill('SIGTERM')
      if (program.exitCode === null) await occurs(program, 'exit')
    },
  }
}

async function portOf(program: ChildProcess): Promise<number> {
  for await (const line of createInterface({ input: program.stdout! })) {
    const ready = /^Ready(?:: http:\/\/[^:]+:(\d+))?/.exec(line)
    if (ready !== null) return Number(ready[1] ?? 0)
  }
  throw new Error('The service ended before it was ready.')
}

const requestOf = (key: string) =>
  `POST /v1/payments HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${DEMO_API_KEY}\r\ncontent-type: application/json\r\nidempotency-key: ${key}\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`
