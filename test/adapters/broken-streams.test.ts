import { randomUUID } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import express, { type RequestHandler } from 'express'
import { fastify } from 'fastify'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent as expressLayer } from '../../src/http/adapters/express/index.ts'
import { idempotent as fastifyMark, idempotency } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as fetchLayer } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as nodeLayer } from '../../src/http/adapters/node/index.ts'
import type { RoutePolicy } from '../../src/http/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { openShop, waitUntil } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { Client } from './client.ts'
import { RawConnection, rawPost } from './raw.ts'
import { listen as listenWithFetch } from './servers/fetch.ts'
import { listening } from './servers/listen.ts'

/** Streams whose client does not read, or is gone, and streams that fail on their way. */
let once: Onlyonce<PostgresTx>
beforeAll(async () => {
  once = (await openShop()).open()
})

const account = () => 'acct_1'
const OPERATION = 'things.create'
type Start = (policy: Omit<RoutePolicy, 'operation' | 'input'>, source: () => Readable) => Promise<number>

const serve = async (listener: RequestListener) => {
  const server = await listening(createServer(listener))
  cleanUpLater(() => server.close())
  return server.port
}

const STARTS: readonly (readonly [string, Start])[] = [
  [
    'Express',
    (policy, source) => {
      const app = express()
      app.set('env', 'test')
      const layer = expressLayer(once, { account, operation: OPERATION, ...policy })
      app.post('/things', layer as unknown as RequestHandler, (_, response, next) => {
        pipeline(source(), response).catch(next)
      })
      return serve(app)
    },
  ],
  [
    'node:http',
    (policy, source) =>
      serve(
        nodeLayer(once, { account, operation: OPERATION, ...policy }, (_, response) =>
          pipeline(source(), response),
        ),
      ),
  ],
  [
    'Fastify',
    async (policy, source) => {
      const app = fastify({ forceCloseConnections: true })
      cleanUpLater(() => app.close())
      await app.register(idempotency, { once, account })
      const preHandler = fastifyMark({ operation: OPERATION, ...policy })
      app.post('/things', { preHandler }, (_, reply) => reply.send(source()))
      await app.listen({ port: 0, host: '127.0.0.1' })
      return (app.server.address() as { port: number }).port
    },
  ],
  [
    'fetch',
    async (policy, source) => {
      const options = { account, operation: OPERATION, ...policy }
      const handler = () => new Response(Readable.toWeb(source()) as ReadableStream<Uint8Array>)
      const server = await listenWithFetch(fetchLayer(once, options, handler))
      cleanUpLater(() => server.close())
      return server.port
    },
  ],
]

const stateOf = async (key: string) =>
  (await once.explain({ account: account(), operation: OPERATION, key })).state
const untilCompleted = (key: string) =>
  waitUntil('the record is completed', async () => (await stateOf(key)) === 'completed')

describe.each(STARTS)('%s', (_, start) => {
  test('a client that does not read, and then hangs up, holds nothing up', async () => {
    let made = 0
    async function* pieces() {
      for (; made < 400; made += 1) yield Buffer.alloc(65_536, 'x')
    }
    const port = await start({ stream: true }, () => Readable.from(pieces()))
    const key = randomUUID()
    const connection = await RawConnection.open(port)
    connection.socket.pause()
    connection.socket.write(rawPost(key, '{}'))
    let before = -1
    await waitUntil('no more is taken', async () => {
      const heldUp = made > 0 && made === before
      before = made
      await new Promise((resolve) => setTimeout(resolve, 50))
      return heldUp
    })
    expect(made).toBeLessThan(400)
    connection.socket.resetAndDestroy()
    await untilCompleted(key)
    expect(made).toBe(400)
  })

  test.each([true, false])(
    'stream: %s: a stream that fails on its way is stored as failed',
    async (stream) => {
      let runs = 0
      async function* pieces() {
        runs += 1
        yield Buffer.from('first ')
        throw new Error('boom')
      }
      const port = await start({ stream }, () => Readable.from(pieces()))
      const client = new Client(port)
      const key = randomUUID()
      await client.send({ key }).catch(() => {})
      await untilCompleted(key)
      const again = await client.send({ key })
      expect([again.status, again.headers['idempotent-replayed'], runs]).toEqual([500, 'true', 1])
    },
  )
})

test('Express: a handler that throws when it has begun to write is stored as failed', async () => {
  const app = express()
  app.set('env', 'test')
  const layer = expressLayer(once, { account, operation: OPERATION }) as unknown as RequestHandler
  app.post('/things', layer, (_, response) => {
    response.write('first ')
    throw new Error('boom')
  })
  const client = new Client(await serve(app))
  const key = randomUUID()
  await client.send({ key }).catch(() => {})
  await untilCompleted(key)
  expect((await client.send({ key })).status).toBe(500)
})

/** Makes its data at once whenever it is asked, and notes in how many turns of the event loop it was. */
function makeEager(count: number, begin: Promise<unknown> = Promise.resolve()) {
  const turns = new Set<number>()
  let turn = 0
  let made = 0
  const next = () => {
    turn += 1
    if (made <= count) setImmediate(next)
  }
  next()
  const push = (source: Readable) => {
    turns.add(turn)
    made += 1
    source.push(made <= count ? Buffer.alloc(65_536, 'x') : null)
  }
  const source = new Readable({
    read() {
      if (made === 1) begin.then(() => push(this))
      else push(this)
    },
  })
  return { source, turns }
}

describe('a source that is never held up does not hold up everything else', () => {
  test('while its reply is held back', async () => {
    const { source, turns } = makeEager(160)
    const options = { account, operation: OPERATION }
    const port = await serve(nodeLayer(once, options, (_, response) => void source.pipe(response)))
    expect((await new Client(port).send({ key: randomUUID() })).body.length).toBe(160 * 65_536)
    expect(turns.size).toBeGreaterThan(5)
  })

  test('when its client is gone', async () => {
    let leave = () => {}
    const gone = new Promise<void>((resolve) => {
      leave = resolve
    })
    const { source, turns } = makeEager(40, gone)
    const options = { account, operation: OPERATION, stream: true }
    const server = createServer(nodeLayer(once, options, (_, response) => void source.pipe(response)))
    server.on('connection', (socket) => socket.once('close', () => setImmediate(leave)))
    const { port, close } = await listening(server)
    cleanUpLater(close)
    const key = randomUUID()
    const connection = await RawConnection.open(port)
    connection.socket.once('data', () => connection.socket.resetAndDestroy())
    connection.socket.write(rawPost(key, '{}'))
    await untilCompleted(key)
    expect(turns.size).toBeGreaterThan(20)
  })
})

test('fetch: a late response without an end is given up when it is too large to be kept', async () => {
  let answered = () => {}
  const late = new Promise<void>((resolve) => {
    answered = resolve
  })
  let givenUp = false
  const endless = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise((resolve) => setImmediate(resolve))
      controller.enqueue(Buffer.alloc(65_536))
    },
    cancel() {
      givenUp = true
    },
  })
  const options = { account, operation: OPERATION, leaseMs: 200, inProgressMaxMs: 300 }
  const route = fetchLayer(once, options, () => late.then(() => new Response(endless)))
  const headers = { 'idempotency-key': randomUUID() }
  const answer = await route(new Request('http://localhost/things', { method: 'POST', headers }))
  expect(answer.status).toBe(503)
  answered()
  await waitUntil('it is given up', () => givenUp)
})
