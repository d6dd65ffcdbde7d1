import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once as occurs } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { Connections } from './http-client.ts'
import { type Measured, measureLatencies as measure } from './latencies.ts'
import { ratioOf, type Side, spreadOf } from './measure.ts'
import type { Report } from './report.ts'
import type { Bench } from './run.ts'

const CONNECTIONS = 64
const REPLAYED = 2_000
const PROGRAM = fileURLToPath(new URL('./http-server.ts', import.meta.url))
const BODY = '{"note":"one row"}'

export async function http({ url, rounds, roundMs }: Bench): Promise<Report> {
  await createOrders(url)
  const plain = await startServer(url, 'no')
  const plugin = await startServer(url, 'yes')
  try {
    const load = { callers: CONNECTIONS, roundMs, rounds }
    const post =
      (server: Server, path: string): Side =>
      () =>
        server.to.send(requestOf(path, randomUUID()), 201)
    const writes = await measure(
      {
        unprotected: post(plain, '/unprotected'),
        autocommit: post(plain, '/autocommit'),
        transaction: post(plugin, '/transaction'),
        handler: post(plugin, '/handler'),
      },
      load,
    )
    const done = await fill(plugin)
    const reads = await measure(
      {
        read: () => plain.to.send(`GET /orders/${pick(done).order} HTTP/1.1\r\nhost: a\r\n\r\n`, 200),
        replay: async () => {
          const { replayed } = await plugin.to.send(requestOf('/transaction', pick(done).key), 201)
          if (!replayed) throw new Error('It ran again.')
        },
      },
      load,
    )
    const idle = await measure(
      {
        without: () => plain.to.send(requestOf('/echo', 'not looked at'), 200),
        unprotected_route_with_plugin: () => plugin.to.send(requestOf('/echo', 'not looked at'), 200),
      },
      load,
    )
    return reportOf(writes, reads, idle, { rounds, roundMs })
  } finally {
    await plain.stop()
    await plugin.stop()
  }
}

function reportOf(
  writes: Measured,
  reads: Measured,
  idle: Measured,
  { rounds, roundMs }: Pick<Bench, 'rounds' | 'roundMs'>,
): Report {
  const compared: [Measured, string, string][] = [
    [writes, 'transaction', 'unprotected'],
    [writes, 'handler', 'unprotected'],
    [writes, 'transaction', 'autocommit'],
    [reads, 'replay', 'read'],
    [idle, 'unprotected_route_with_plugin', 'without'],
  ]
  const rates = { ...writes.rates, ...reads.rates, ...idle.rates }
  const speeds = compared.map(([{ rates }, a, b]) => [`${a}/${b}`, ratioOf(rates, a, b)])
  const latencies = compared.map(([{ p99 }, a, b]) => [`p99 ${b}/${a}`, ratioOf(p99, b, a)])
  return {
    suite: 'http',
    rates: Object.fromEntries(Object.entries(rates).map(([name, values]) => [name, spreadOf(values)])),
    ratios: Object.fromEntries([...speeds, ...latencies]),
    aims: {
      'transaction/unprotected': 0.9,
      'handler/unprotected': 0.75,
      'replay/read': 1.2,
      'unprotected_route_with_plugin/without': 0.97,
      'p99 unprotected/transaction': 0.9,
      'p99 unprotected/handler': 0.75,
      'p99 read/replay': 1.2,
    },
    commitsPerRequest: {},
    notes: [
      `Fastify, ${CONNECTIONS} connections, 16 to the database, ${rounds} rounds of ${roundMs} ms a side; a server without the plugin and one with it, each in a process of its own.`,
      'p99: how many times as long the slowest hundredth takes on the one side; more is better for the protected side, as with rates.',
    ],
  }
}

const requestOf = (path: string, key: string) =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nidempotency-key: ${key}\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!

/** Completed keys, each with the order that was made under it. */
async function fill({ to }: Server): Promise<{ key: string; order: string }[]> {
  const done: { key: string; order: string }[] = []
  while (done.length < REPLAYED) {
    const keys = Array.from({ length: CONNECTIONS }, () => randomUUID())
    const answers = await Promise.all(keys.map((key) => to.send(requestOf('/transaction', key), 201)))
    done.push(...answers.map(({ body }, i) => ({ key: keys[i]!, order: JSON.parse(body).id as string })))
  }
  return done
}

interface Server {
  readonly to: Connections
  stop(): Promise<void>
}

async function startServer(url: string, plugin: 'yes' | 'no'): Promise<Server> {
  const program = spawn(process.execPath, ['--import', 'tsx', PROGRAM], {
    env: { ...process.env, DATABASE_URL: url, PLUGIN: plugin },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const to = await Connections.open(await portOf(program), CONNECTIONS)
  return {
    to,
    async stop() {
      to.close()
      program.stdin!.end()
      if (program.exitCode === null) await occurs(program, 'exit')
    },
  }
}

async function portOf(program: ChildProcess): Promise<number> {
  for await (const line of createInterface({ input: program.stdout! })) return Number(line)
  throw new Error('The server ended before it listened.')
}

async function createOrders(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('CREATE TABLE orders (id uuid PRIMARY KEY, note text NOT NULL)')
  await client.end()
}
