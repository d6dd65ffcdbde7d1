import { createServer } from 'node:http'
import express5, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'
import express4 from 'express4'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/express/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { hearWarnings } from '../setup/warnings.ts'
import { Client } from './client.ts'
import { expectProblem, expectReplay } from './expectations.ts'
import { listening } from './servers/listen.ts'

/** What an operation is called in Express: by what was declared, never by what a client spelt. */
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

type Package = typeof express5

interface Given {
  readonly once: Onlyonce<PostgresTx>
  readonly layer: RequestHandler
  readonly done: RequestHandler
}

const account = () => 'acct_1'

describe.each([
  ['Express 5', express5],
  ['Express 4', express4 as unknown as Package],
] as const)('%s', (_, express) => {
  async function start(build: (app: Express, given: Given) => void) {
    const once = shop.open()
    const app = express()
    app.set('env', 'test')
    let runs = 0
    const done = (request: Request, response: Response) => {
      runs += 1
      response.status(201).json({ operation: request.idempotency?.operation, runs })
    }
    build(app, { once, layer: idempotent(once, { account }) as unknown as RequestHandler, done })
    const server = await listening(createServer(app))
    cleanUpLater(() => server.close())
    return { client: new Client(server.port), once, runs: () => runs }
  }

  const operationAt = async (client: Client, path: string) => (await client.send({ path })).json().operation

  test('patterns in all forms are names: text, lists, regular expressions', async () => {
    const { client } = await start((app, { layer, done }) => {
      app.post('/things/:id', layer, done)
      app.post(['/a', '/b/:id'], layer, done)
      app.post(/^\/files\/(\w+)$/, layer, done)
      app.route('/routed').post(layer, done)
      app.all('/all', layer, done)
    })
    expect(await operationAt(client, '/Things/7')).toBe('POST /things/:id')
    expect(await operationAt(client, '/A/')).toBe('POST ["/a","/b/:id"]')
    expect(await operationAt(client, '/b/7')).toBe('POST ["/a","/b/:id"]')
    expect(await operationAt(client, '/files/x')).toBe('POST /^\\/files\\/(\\w+)$/')
    expect(await operationAt(client, '/ROUTED')).toBe('POST /routed')
    expect(await operationAt(client, '/all')).toBe('POST /all')
  })

  test('what a handler threw is told to observers, whichever error handler answered it', async () => {
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const layer = idempotent(once, { account }) as unknown as RequestHandler
    const { client } = await start((app) => {
      const broken = () => {
        throw Object.assign(new TypeError('no till 4242424242424242'), { code: 'E_TILL' })
      }
      app.post('/own', layer, broken, ((_error, _request, response, _next) => {
        response.status(500).json({ sorry: true })
      }) as ErrorRequestHandler)
      app.post('/plain', layer, broken)
      app.post('/said', layer, (_, response) => void response.status(500).json({}))
    })
    for (const path of ['/own', '/plain', '/said']) expect((await client.send({ path })).status).toBe(500)
    const failure = { code: 'E_TILL', message: 'no till [card number]' }
    expect(heard.of('handler_failed')).toMatchObject([
      { id: { operation: 'POST /own' }, failure, status: 500 },
      { id: { operation: 'POST /plain' }, failure, status: 500 },
      { id: { operation: 'POST /said' }, failure: { code: 'http_500' } },
    ])
  })

  test('a list of paths, and a regular expression: each path is a request of its own', async () => {
    const { client, runs } = await start((app, { layer, done }) => {
      app.post(['/a', '/b'], layer, done)
      app.post(/^\/files\/(\w+)$/i, layer, done)
    })
    for (const [one, other] of [
      ['/a', '/b'],
      ['/files/x', '/files/X'],
    ] as const) {
      const key = crypto.randomUUID()
      const first = await client.send({ key, path: one })
      expectProblem(await client.send({ key, path: other }), 'key_reused')
      expectReplay(first, await client.send({ key, path: one }))
    }
    expect(runs()).toBe(2)
  })

  test('applications know where they are mounted, routers do not', async () => {
    const { client } = await start((app, { layer, done }) => {
      const inner = express()
      inner.post('/orders', layer, done)
      const outer = express()
      outer.use('/shops/:shop', inner)
      app.use('/v1', outer)
      const router = express.Router()
      router.post('/refunds', layer, done)
      app.use('/v2', router)
    })
    expect(await operationAt(client, '/V1/shops/a/orders')).toBe('POST /v1/shops/:shop/orders')
    expect(await operationAt(client, '/v2/refunds')).toBe('POST /refunds')
  })

  test('nested routers with parameters: one key, however it is spelt, runs once', async () => {
    const { client, runs } = await start((app, { layer, done }) => {
      const orders = express.Router({ mergeParams: true })
      orders.post('/', layer, done)
      const tenants = express.Router()
      tenants.use('/orders', orders)
      app.use('/t/:tenant', tenants)
    })
    const key = crypto.randomUUID()
    const first = await client.send({ key, path: '/t/acme/orders' })
    for (const path of [
      '/T/acme/orders',
      '/t/acme/ORDERS',
      '/t/acme/orders/',
      '/t/%61cme/orders',
      '/t/Acme/orders',
    ]) {
      expectProblem(await client.send({ key, path }), 'key_reused')
    }
    expectReplay(first, await client.send({ key, path: '/t/acme/orders' }))
    expect(runs()).toBe(1)
  })

  test('two routers with one pattern: a key of the one is reused in the other, and its reply stays its own', async () => {
    const { client, runs } = await start((app, { layer, done }) => {
      for (const mount of ['/orders', '/refunds']) {
        const router = express.Router()
        router.post('/', layer, done)
        app.use(mount, router)
      }
    })
    const key = crypto.randomUUID()
    await client.send({ key, path: '/orders' })
    expectProblem(await client.send({ key, path: '/refunds' }), 'key_reused')
    expect(runs()).toBe(1)
  })

  test('a path that was rewritten counts as it was rewritten', async () => {
    const { client, runs } = await start((app, { layer, done }) => {
      app.use((request, _response, next) => {
        request.url = `/t/${request.headers['x-tenant']}${request.url}`
        next()
      })
      app.post('/t/:tenant/orders', layer, done)
    })
    const key = crypto.randomUUID()
    await client.send({ key, path: '/orders', headers: { 'x-tenant': 'a' } })
    expectProblem(await client.send({ key, path: '/orders', headers: { 'x-tenant': 'b' } }), 'key_reused')
    expect(runs()).toBe(1)
  })

  test('app.use has no pattern: without a name nothing runs, and nothing is stored', async () => {
    const { client, runs } = await start((app, { layer, done }) => {
      app.use('/v1', layer)
      app.post('/v1/things', done)
    })
    const key = crypto.randomUUID()
    const told = hearWarnings('OnlyonceMistakeWarning')
    for (let i = 0; i < 2; i += 1) {
      expectProblem(await client.send({ key, path: '/v1/things' }), 'operation_missing')
    }
    expect(told).toEqual([expect.stringContaining("{ operation: 'payments.create' }")])
    expect(runs()).toBe(0)
    const { rows } = await shop.observer.query('SELECT FROM onlyonce.records WHERE key = $1', [key])
    expect(rows).toEqual([])
  })

  test('app.use with a name: paths are told apart as they were spelt', async () => {
    const { client, runs } = await start((app, { once, done }) => {
      const operation = 'things.create'
      app.use('/v1', idempotent(once, { account, operation }) as unknown as RequestHandler)
      app.post('/v1/things', done)
    })
    const key = crypto.randomUUID()
    const first = await client.send({ key, path: '/v1/things' })
    expect(first.json().operation).toBe('things.create')
    for (const path of ['/V1/things', '/v1/things/']) {
      expectProblem(await client.send({ key, path }), 'key_reused')
    }
    expect(runs()).toBe(1)
  })
})
