import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express, { type RequestHandler } from 'express'
import { Hono } from 'hono'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent as expressLayer } from '../../src/http/adapters/express/index.ts'
import { idempotent as fetchLayer } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as honoLayer } from '../../src/http/adapters/hono/index.ts'
import type { RoutePolicy } from '../../src/http/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { hearWarnings } from '../setup/warnings.ts'
import { Client } from './client.ts'
import { listening } from './servers/listen.ts'

/** Two layers with something between them that makes a new Request: nothing of what is left on the first one is on it. */
let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const account = () => 'acct_1'
type Serve = (request: Request) => Response | Promise<Response>
type Build = (outer: RoutePolicy, inner: RoutePolicy, handle: () => Response) => Serve

const BUILDS: readonly (readonly [string, Build])[] = [
  [
    'fetch',
    (outer, inner, handle) => {
      const once = shop.open()
      const own = fetchLayer(once, { account, ...inner } as never, handle)
      const renew = async (request: Request) => {
        // Away from the turn in which it was called, as middleware is.
        await new Promise((resolve) => setImmediate(resolve))
        return own(new Request(request))
      }
      return fetchLayer(once, { account, ...outer } as never, renew)
    },
  ],
  [
    'Hono, mounted',
    (outer, inner, handle) => {
      const once = shop.open()
      const things = new Hono().post('/things', honoLayer(once, { account, ...inner }), handle)
      const app = new Hono().use('/v1/*', honoLayer(once, { account, ...outer }))
      app.mount('/v1', things.fetch)
      return (request) => app.fetch(request)
    },
  ],
]

async function send(serve: Serve, key: string) {
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
  const sent = new Request('http://localhost/v1/things', { method: 'POST', headers, body: '{}' })
  const response = await serve(sent)
  const { code } = (await response.json()) as { code?: string }
  return { status: response.status, code, replayed: response.headers.get('idempotent-replayed') === 'true' }
}

const stored = async (key: string) => {
  const text = 'SELECT operation, state FROM onlyonce.records WHERE key = $1'
  return (await shop.observer.query(text, [key])).rows
}

describe.each(BUILDS)('%s', (_, build) => {
  test('handler: other options are told, and what stands between the layers never runs again', async () => {
    hearWarnings('OnlyonceMistakeWarning')
    let runs = 0
    const serve = build({ operation: 'outer' }, { operation: 'inner' }, () => Response.json({ runs: ++runs }))
    const key = randomUUID()
    for (const replayed of [false, true])
      expect(await send(serve, key)).toEqual({ status: 500, code: 'handler_failed', replayed })
    expect(runs).toBe(0)
    expect(await stored(key)).toEqual([{ operation: 'outer', state: 'completed' }])
  })

  test.each(['transaction'] as const)(
    '%s: other options are told, and nothing is stored',
    async (protect) => {
      hearWarnings('OnlyonceMistakeWarning')
      let runs = 0
      const handle = () => {
        runs += 1
        return Response.json({}, { status: 201 })
      }
      const serve = build({ operation: 'outer', protect }, { operation: 'inner', protect }, handle)
      const key = randomUUID()
      for (let i = 0; i < 2; i += 1)
        expect(await send(serve, key)).toEqual({ status: 500, code: 'layer_twice', replayed: false })
      expect(runs).toBe(0)
      expect(await stored(key)).toEqual([{ operation: 'outer', state: 'retryable' }])
    },
  )

  test('another header for the key is told, too', async () => {
    hearWarnings('OnlyonceMistakeWarning')
    const named = { operation: 'things.create' }
    const serve = build(named, { ...named, header: 'X-Key' }, () => Response.json({}))
    expect((await send(serve, randomUUID())).code).toBe('handler_failed')
  })

  test('equal options: the request goes through the inner layer, and runs once', async () => {
    let runs = 0
    const handle = () => {
      runs += 1
      return Response.json({}, { status: 201 })
    }
    const named = { operation: 'things.create' }
    const serve = build(named, { ...named }, handle)
    const key = randomUUID()
    expect(await send(serve, key)).toEqual({ status: 201, code: undefined, replayed: false })
    expect(await send(serve, key)).toEqual({ status: 201, code: undefined, replayed: true })
    expect(runs).toBe(1)
    expect(await stored(key)).toEqual([{ operation: 'things.create', state: 'completed' }])
  })
})

test('Express around Hono, which makes a Request of what Node has read', async () => {
  hearWarnings('OnlyonceMistakeWarning')
  const once = shop.open()
  const things = new Hono().post('/v1/things', honoLayer(once, { account }), (c) => c.json({}, 201))
  const app = express()
  app.use(expressLayer(once, { account, operation: 'all' }) as unknown as RequestHandler)
  app.use(getRequestListener(things.fetch) as unknown as RequestHandler)
  const server = await listening(createServer(app))
  cleanUpLater(() => server.close())
  const answer = await new Client(server.port).send({ key: randomUUID(), path: '/v1/things' })
  expect([answer.status, answer.json().code]).toEqual([500, 'handler_failed'])
})

describe('requests that a handler makes itself are protected for themselves', () => {
  test.each([
    ['with a key of their own', '/v1/payments', true],
    ['to another place', '/v1/payments', false],
    ['with a key of their own, to the same place', '/v1/things', true],
  ])('%s', async (_, path, ownKey) => {
    const once = shop.open()
    let runs = 0
    const app = new Hono()
    const call = (key: string, from: string) =>
      app.request(path, { method: 'POST', headers: { 'idempotency-key': key, from } })
    const layer = honoLayer(once, { account })
    app.post('/v1/payments', layer, (c) => c.json({ paid: ++runs }, 201))
    app.post('/v1/things', layer, async (c) => {
      if (c.req.header('from') === 'inside') return c.json({ paid: ++runs }, 201)
      const { key, derivedKey } = c.var.idempotency!
      return c.json({ inner: (await call(ownKey ? derivedKey : key, 'inside')).status }, 201)
    })
    const key = randomUUID()
    const first = await app.request('/v1/things', { method: 'POST', headers: { 'idempotency-key': key } })
    expect([first.status, await first.json(), runs]).toEqual([201, { inner: 201 }, 1])
  })

  test('what a handler has begun and left alone is not inside of it any more', async () => {
    const once = shop.open()
    const app = new Hono()
    let later: Promise<number> = Promise.resolve(0)
    const called = deferred()
    let runs = 0
    app.post('/things', honoLayer(once, { account }), (c) => {
      runs += 1
      const { key } = c.var.idempotency!
      const headers = { 'idempotency-key': key }
      if (runs === 1)
        later = called.promise.then(
          async () => (await app.request('/things', { method: 'POST', headers })).status,
        )
      return c.json({}, 201)
    })
    const headers = { 'idempotency-key': randomUUID() }
    expect((await app.request('/things', { method: 'POST', headers })).status).toBe(201)
    called.resolve()
    expect([await later, runs]).toEqual([201, 1])
  })
})

function deferred() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
