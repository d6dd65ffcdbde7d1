import { type ClientHttp2Session, connect, createServer, type Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { type FastifyServerFactory, fastify } from 'fastify'
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as idempotentHono } from '../../src/http/adapters/hono/index.ts'
import { idempotent as idempotentNode } from '../../src/http/adapters/node/index.ts'
import { catchError, openShop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { hearWarnings } from '../setup/warnings.ts'

interface Seen {
  readonly status: number
  readonly replayed: string | undefined
  readonly text: string
}

/** A client that speaks HTTP/2 alone, until the test is over. */
async function clientOf(server: Http2Server) {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  cleanUpLater(async () => {
    session.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (key: string, body: unknown, method = 'POST') => send(session, key, method, JSON.stringify(body))
}

/** Without a length: a body of HTTP/2 ends where its stream does. */
function send(session: ClientHttp2Session, key: string, method: string, body: string): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key }
    const stream = session.request(
      { ':method': method, ':path': '/things', ...headers },
      { endStream: false },
    )
    let [status, text] = [0, '']
    let replayed: string | undefined
    stream.setEncoding('utf8').on('error', reject)
    stream.on('response', (head) => {
      status = head[':status']!
      replayed = head['idempotent-replayed'] as string | undefined
    })
    stream.on('data', (part) => {
      text += part
    })
    stream.on('end', () => resolve({ status, replayed, text }))
    stream.end(method === 'GET' ? undefined : body)
  })
}

const account = () => 'acct_1'
const key = 'a-key-over-http2'

describe('over HTTP/2', () => {
  test('node:http is refused at the first request, before anything runs or is claimed', async () => {
    const once = (await openShop()).open()
    let runs = 0
    const layer = idempotentNode(once, { account, operation: 'things' }, (_, response) => {
      runs += 1
      response.end('ran')
    })
    const call = await clientOf(createServer(layer as Parameters<typeof createServer>[1] & object))
    const told = hearWarnings('OnlyonceMistakeWarning')
    const refused = await call(key, { a: 1 })
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      500,
      { code: 'setup_invalid', retryable: true, executed: 'not_by_this_request' },
    ])
    expect(told).toEqual([expect.stringContaining('HTTP/2')])
    expect([runs, (await once.explain({ account: 'acct_1', operation: 'things', key })).state]).toEqual([
      0,
      'none',
    ])
    // What is not protected is none of our business.
    expect(await call(key, null, 'GET')).toMatchObject({ status: 200, text: 'ran' })
  })

  test('Fastify is refused when the plugin is registered', async () => {
    const app = fastify({ http2: true })
    const options = { once: (await openShop()).open(), account }
    const registered = app.register(idempotency as never, options as never)
    const error = await catchError(Promise.resolve(registered))
    expect(error).toMatchObject({ code: 'setup_invalid', message: expect.stringContaining('HTTP/2') })
  })

  test('and at the first request where a server of its own speaks it', async () => {
    const once = (await openShop()).open()
    let server: Http2Server | undefined
    const serverFactory = ((handler: never) => {
      server = createServer(handler)
      return server
    }) as unknown as FastifyServerFactory
    const app = fastify({ serverFactory })
    await app.register(idempotency, { once, account })
    let runs = 0
    app.post('/things', { preHandler: idempotent() }, async () => {
      runs += 1
      return { runs }
    })
    await app.ready()
    const call = await clientOf(server!)
    const told = hearWarnings('OnlyonceMistakeWarning')
    const refused = await call(key, { a: 1 })
    expect([refused.status, runs]).toEqual([500, 0])
    expect(told).toEqual([expect.stringContaining('HTTP/2')])
  })

  test("Hono keeps the contract: it does not need Node's request and response", async () => {
    const once = (await openShop()).open()
    const app = new Hono()
    let runs = 0
    app.post('/things', idempotentHono(once, { account }), async (c) => {
      runs += 1
      return c.json({ runs, body: await c.req.json() }, 201)
    })
    const call = await clientOf(createAdaptorServer({ fetch: app.fetch, createServer }) as Http2Server)
    const first = await call(key, { a: 1 })
    expect(first).toEqual({ status: 201, replayed: undefined, text: '{"runs":1,"body":{"a":1}}' })
    expect(await call(key, { a: 1 })).toEqual({ ...first, replayed: 'true' })
    expect((await call(key, { a: 2 })).status).toBe(422)
    expect(runs).toBe(1)
  })
})
