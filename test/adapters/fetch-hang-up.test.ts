import { randomUUID } from 'node:crypto'
import { once as occurs } from 'node:events'
import { Hono } from 'hono'
import { beforeAll, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as idempotentForHono } from '../../src/http/adapters/hono/index.ts'
import type { RoutePolicy } from '../../src/http/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { type Gate, makeGate, openShop, waitUntil } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { Client } from './client.ts'
import { listen } from './servers/fetch.ts'

let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  once = (await openShop()).open()
})

type Handle = (request: Request) => Promise<Response>
type Protect = (
  policy: Omit<RoutePolicy, 'operation' | 'input'>,
  handle: Handle,
) => (request: Request) => Response | Promise<Response>

const PART = 'abc'.repeat(20_000)
const OPERATION = 'things.create'
const account = () => 'acct_1'
const plain: Protect = (policy, handle) =>
  idempotent(once, { account, operation: OPERATION, ...policy }, (request: Request) => handle(request))
const hono: Protect = (policy, handle) =>
  new Hono().post('/things', idempotentForHono(once, { account, operation: OPERATION, ...policy }), (c) =>
    handle(c.req.raw),
  ).fetch

const untilCompleted = (key: string) =>
  waitUntil('the reply is stored', async () => {
    const { state } = await once.explain({ account: account(), operation: OPERATION, key })
    return state === 'completed'
  })

const isAborted = async ({ signal }: Request) => {
  if (!signal.aborted) await occurs(signal, 'abort')
}

async function serve(fetch: (request: Request) => Response | Promise<Response>): Promise<Client> {
  const server = await listen(fetch)
  cleanUpLater(() => server.close())
  return new Client(server.port)
}

const workOf = (key: string) => ({ key, body: 'the work', headers: { 'content-type': 'text/plain' } })

/** Sends a request, and hangs up when the gate is reached. */
async function sendAndLeave(client: Client, key: string, gate: Gate): Promise<void> {
  const request = client.open(workOf(key))
  request.on('error', () => {})
  request.end('the work')
  await gate.reached
  request.destroy()
}

test.each([
  ['a plain handler', plain],
  ['Hono', hono],
])('%s goes on without its client, and can still read the body', async (_, protect) => {
  const key = randomUUID()
  const gate = makeGate()
  gate.open()
  let runs = 0
  const client = await serve(
    protect({}, async (request) => {
      runs += 1
      await gate.pass()
      await isAborted(request)
      return new Response(`${await request.text()} in run ${runs}`)
    }),
  )
  await sendAndLeave(client, key, gate)
  await untilCompleted(key)
  const again = await client.send(workOf(key))
  expect([again.text, again.headers['idempotent-replayed']]).toEqual(['the work in run 1', 'true'])
})

test.each([
  ['a plain handler', 'before it begins', plain],
  ['a plain handler', 'in the middle', plain],
  ['Hono', 'before it begins', hono],
  ['Hono', 'in the middle', hono],
] as const)('a stream of %s whose client leaves %s is stored whole', async (_, when, protect) => {
  const key = randomUUID()
  const gate = makeGate()
  gate.open()
  const client = await serve(
    protect({ stream: true }, async (request) => {
      if (when === 'before it begins') await leave(request)
      return new Response(parts(() => (when === 'in the middle' ? leave(request) : Promise.resolve())))
    }),
  )
  const leave = async (request: Request) => {
    await gate.pass()
    await isAborted(request)
  }
  await sendAndLeave(client, key, gate)
  await untilCompleted(key)
  const again = await client.send(workOf(key))
  expect([again.text, again.headers['idempotent-replayed']]).toEqual([PART.repeat(3), 'true'])
})

/** Three parts, with something that happens in between. */
function parts(between: () => Promise<void>): ReadableStream<Uint8Array> {
  let i = 0
  return new ReadableStream({
    async pull(controller) {
      i += 1
      if (i === 2) await between()
      if (i <= 3) controller.enqueue(new TextEncoder().encode(PART))
      else controller.close()
    },
  })
}
