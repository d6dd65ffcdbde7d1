/** Every adapter in one process, flooded while its database is stopped, falls silent and comes back. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { startFaultProxy } from '../../src/testing/index.ts'
import { ADAPTERS } from '../adapters/servers/all.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { withClient } from '../setup/client.ts'
import { compiled } from '../setup/compiled.ts'
import { waitUntil } from '../setup/wait.ts'
import { FLOOD_ROUTES } from './bounds.ts'
import { type Answered, type Flooded, flood, send } from './flood.ts'
import { codeOf, expectDocumented, tally } from './judge.ts'
import { startStoppableServer } from './stopped-server.ts'

const PROGRAM = compiled(new URL('../programs/flood-adapters.ts', import.meta.url))
const CONNECTIONS = 12
/** Longer than each bound of the store, so that all of them are met. */
const STOPPED_MS = 2_500
const SILENT_MS = 1_500
/** The stall, all the bounds of a request one after the other, and a machine that has much to do. */
const ANSWER_MAX_MS = 30_000

interface Served {
  readonly child: ChildProcess
  readonly ports: Readonly<Record<string, number>>
  stderr(): string
}

let served: Served
const flooded = new Map<string, Flooded>()

beforeAll(async () => {
  const server = await startStoppableServer()
  await withClient(server.url, (client) => client.query('CREATE TABLE effects (note text)'))
  const { hostname: host, port } = new URL(server.url)
  const proxy = await startFaultProxy({ target: { host, port: Number(port) } })
  cleanUpLater(() => proxy.close())
  served = await start(proxy.url(server.url))
  await Promise.all(ADAPTERS.flatMap(({ name }) => FLOOD_ROUTES.map((path) => untilServed(name, path))))
  const over = new AbortController()
  const floods = ADAPTERS.map(async ({ name }) => {
    flooded.set(name, await floodOne(served.ports[name]!, over.signal))
  })
  // These are no waits for a fact: they are how long the load and the faults last.
  await pause(500)
  server.stall()
  await pause(STOPPED_MS)
  server.goOn()
  await pause(300)
  proxy.setFault({ kind: 'black_hole' })
  await pause(SILENT_MS)
  proxy.setFault({ kind: 'reset' })
  proxy.setFault(null)
  await pause(300)
  over.abort()
  await Promise.all(floods)
}, 90_000)

describe.each(ADAPTERS.map(({ name }) => name))('%s, flooded while the database is stalled', (name) => {
  test('answers every request in time, with what the documents have', () => {
    expectDocumented(flooded.get(name)!)
  })

  test('has met the stall', () => {
    const refused = flooded.get(name)!.answers.filter(({ status }) => status === 503)
    expect(refused.length, JSON.stringify(tally(flooded.get(name)!))).toBeGreaterThan(0)
  })

  test.each(FLOOD_ROUTES)('serves %s again', (path) => untilServed(name, path))
})

test('the process lives, and has said nothing of an error that nobody caught', () => {
  expect({ code: served.child.exitCode, signal: served.child.signalCode, stderr: served.stderr() }).toEqual({
    code: null,
    signal: null,
    stderr: '',
  })
})

test('requests waited for a connection until the bounds of the store and of the pool', () => {
  const codes = new Set([...flooded.values()].flatMap(({ answers }) => answers.map(codeOf)))
  expect([...codes]).toEqual(expect.arrayContaining(['pool_exhausted']))
})

async function untilServed(name: string, path: string): Promise<void> {
  await waitUntil(`${name} serves ${path}`, async () => {
    const answer = await send(served.ports[name]!, askFor(path), ANSWER_MAX_MS)
    return (answer as Answered).status === 201
  })
}

function floodOne(port: number, over: AbortSignal): Promise<Flooded> {
  const ask = (nth: number) => askFor(FLOOD_ROUTES[nth % FLOOD_ROUTES.length]!)
  return flood({ port, connections: CONNECTIONS, over, answerMaxMs: ANSWER_MAX_MS, ask })
}

function askFor(path: string) {
  return { path, headers: { 'x-account': 'acct_flood' }, body: JSON.stringify({ note: 'flood' }) }
}

async function start(url: string): Promise<Served> {
  const child = spawn(process.execPath, [PROGRAM], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  cleanUpLater(async () => void child.kill('SIGKILL'))
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  const first = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout! }).once('line', resolve)
    child.once('exit', () => reject(new Error(`The servers did not start.\n${stderr}`)))
  })
  return { child, ports: JSON.parse(first), stderr: () => stderr }
}
