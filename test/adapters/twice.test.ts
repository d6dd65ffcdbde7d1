import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Controller, Post } from '@nestjs/common'
import express5, { type RequestHandler } from 'express'
import express4 from 'express4'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { idempotent as expressLayer } from '../../src/http/adapters/express/index.ts'
import { idempotent as fastifyMark, idempotency } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as fetchLayer } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as honoLayer } from '../../src/http/adapters/hono/index.ts'
import { Idempotent } from '../../src/http/adapters/nest/index.ts'
import { idempotent as nodeLayer } from '../../src/http/adapters/node/index.ts'
import type { RoutePolicy } from '../../src/http/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { catchError, openShop, SECRET, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { Client } from './client.ts'
import { listening } from './servers/listen.ts'
import { onExpress as onExpressOfNest } from './servers/nest.ts'
import { openApp } from './servers/nest-app.ts'

/** Two layers around one handler, as it happens: one of the application, and one of the route. */
let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const account = () => 'acct_1'
type HandlerPolicy = Omit<RoutePolicy, 'operation' | 'input'> & { readonly operation?: string }

interface Policies {
  readonly outer: HandlerPolicy
  readonly inner: HandlerPolicy
}
interface Answered {
  readonly status: number
  readonly code: string | undefined
  readonly replayed: boolean
}
type Send = (key: string) => Promise<Answered>
type Start = (once: Onlyonce<PostgresTx>, policies: Policies, handle: () => void) => Promise<Send>

async function overHttp(listener: Parameters<typeof createServer>[1]): Promise<Send> {
  const server = await listening(createServer(listener as never))
  cleanUpLater(() => server.close())
  const client = new Client(server.port)
  return async (key) => {
    const { status, headers, text } = await client.send({ key })
    return { status, code: codeIn(text), replayed: headers['idempotent-replayed'] === 'true' }
  }
}

function overFetch(handler: (request: Request) => Response | Promise<Response>): Send {
  return async (key) => {
    const init = { method: 'POST', headers: { 'idempotency-key': key } }
    const response = await handler(new Request('http://localhost/things', init))
    const replayed = response.headers.get('idempotent-replayed') === 'true'
    return { status: response.status, code: codeIn(await response.text()), replayed }
  }
}

const codeIn = (text: string): string | undefined => {
  try {
    return JSON.parse(text).code
  } catch {
    return undefined
  }
}

const onExpress =
  (express: typeof express5): Start =>
  (once, { outer, inner }, handle) => {
    const app = express()
    app.set('env', 'test')
    app.use(expressLayer(once, { account, ...outer }) as unknown as RequestHandler)
    app.post(
      '/things',
      expressLayer(once, { account, ...inner }) as unknown as RequestHandler,
      (_, response) => {
        handle()
        response.status(201).json({})
      },
    )
    return overHttp(app as never)
  }

const STARTS: readonly (readonly [string, Start])[] = [
  ['Express 5', onExpress(express5)],
  ['Express 4', onExpress(express4 as unknown as typeof express5)],
  [
    'Hono',
    async (once, { outer, inner }, handle) => {
      const app = new Hono()
      app.use('*', honoLayer(once, { account, ...outer }))
      app.post('/things', honoLayer(once, { account, ...inner }), (c) => {
        handle()
        return c.json({}, 201)
      })
      return overFetch((request) => app.fetch(request))
    },
  ],
  [
    'fetch',
    async (once, { outer, inner }, handle) => {
      const own = fetchLayer(once, { account, operation: 'things.create', ...inner }, () => {
        handle()
        return Response.json({}, { status: 201 })
      })
      return overFetch(
        fetchLayer(once, { account, operation: 'things.create', ...outer }, (request) => own(request)),
      )
    },
  ],
  [
    'node:http',
    (once, { outer, inner }, handle) => {
      const own = nodeLayer(once, { account, operation: 'things.create', ...inner }, (_, response) => {
        handle()
        response.writeHead(201, { 'content-type': 'application/json' }).end('{}')
      })
      return overHttp(nodeLayer(once, { account, operation: 'things.create', ...outer }, (a, b) => own(a, b)))
    },
  ],
]

describe.each(STARTS)('%s', (_, start) => {
  const stored = async (key: string) => {
    const text = 'SELECT state FROM onlyonce.records WHERE key = $1'
    return (await shop.observer.query(text, [key])).rows.map(({ state }) => state)
  }

  test('handler: other policies are told, and what stands between the layers never runs again', async () => {
    let runs = 0
    const outer = { operation: 'things.create' }
    const inner = { operation: 'things.make' }
    const send = await start(shop.open(), { outer, inner }, () => {
      runs += 1
    })
    const key = randomUUID()
    expect(await send(key)).toEqual({ status: 500, code: 'handler_failed', replayed: false })
    expect(await send(key)).toEqual({ status: 500, code: 'handler_failed', replayed: true })
    expect(runs).toBe(0)
  })

  test.each(['transaction'] as const)(
    '%s: other policies are told, and nothing is stored',
    async (protect) => {
      let runs = 0
      const outer = { operation: 'things.create', protect }
      const inner = { operation: 'things.make', protect }
      const send = await start(shop.open(), { outer, inner }, () => {
        runs += 1
      })
      const key = randomUUID()
      for (let i = 0; i < 2; i += 1) {
        expect(await send(key)).toEqual({ status: 500, code: 'layer_twice', replayed: false })
      }
      expect(runs).toBe(0)
      expect(await stored(key)).toEqual(['retryable'])
      // Mended, the same request runs.
      const mended = await start(shop.open(), { outer, inner: outer }, () => {
        runs += 1
      })
      expect((await mended(key)).status).toBe(201)
      expect(runs).toBe(1)
    },
  )

  test('equal policies: the inner layer lets the request through, and it runs once', async () => {
    let runs = 0
    const policy = { operation: 'things.create', retentionMs: 60_000 }
    const send = await start(shop.open(), { outer: policy, inner: { ...policy } }, () => {
      runs += 1
    })
    const key = randomUUID()
    expect(await send(key)).toEqual({ status: 201, code: undefined, replayed: false })
    expect(await send(key)).toEqual({ status: 201, code: undefined, replayed: true })
    expect(runs).toBe(1)
  })
})

test('two copies of the package see each other', async () => {
  vi.resetModules()
  const copy = await import('../../src/http/adapters/express/index.ts')
  const { onlyonce } = await import('../../src/index.ts')
  const { postgres } = await import('../../src/store/postgres/index.ts')
  const other = onlyonce({
    store: postgres({ pool: shop.database.pool({ max: 2 }) }),
    secret: SECRET,
  })
  cleanUpLater(() => other.close())
  const once = shop.open()
  let runs = 0
  const app = express5()
  const operation = 'things.create'
  app.use(copy.idempotent(other, { account, operation }) as unknown as RequestHandler)
  app.post(
    '/things',
    expressLayer(once, { account, operation }) as unknown as RequestHandler,
    (_, response) => {
      runs += 1
      response.status(201).json({})
    },
  )
  const send = await overHttp(app as never)
  expect((await send(randomUUID())).code).toBe('handler_failed')
  expect(runs).toBe(0)
})

test('Fastify: two marks on one route are told at the start, unless they are equal', async () => {
  const app = fastify()
  cleanUpLater(() => app.close())
  await app.register(idempotency, { once: shop.open(), account })
  const add = async (...marks: ReturnType<typeof fastifyMark>[]) =>
    app.post(`/${randomUUID()}`, { preHandler: marks }, async () => ({}))
  expect((await catchError(add(fastifyMark(), fastifyMark({ protect: 'transaction' })))).code).toBe(
    'layer_twice',
  )
  await add(fastifyMark({ protect: 'transaction' }), fastifyMark({ protect: 'transaction' }))
})

describe('NestJS', () => {
  test('a decorator twice on one handler is told when it is applied', () => {
    const twice = () => {
      class Things {
        make() {}
      }
      const descriptor = Object.getOwnPropertyDescriptor(Things.prototype, 'make')!
      Idempotent()(Things.prototype, 'make', descriptor)
      Idempotent()(Things.prototype, 'make', Object.getOwnPropertyDescriptor(Things.prototype, 'make')!)
    }
    expect(twice).toThrow(/stands twice.*Things\.make/)
  })

  test('a layer before all routes, and a decorator', async () => {
    let runs = 0
    @Controller('things')
    class Things {
      @Post()
      @Idempotent()
      create() {
        runs += 1
      }
    }
    const once = shop.open()
    const layer = expressLayer(once, { account: () => 'acct_1', operation: 'things.create' })
    const client = await openApp(onExpressOfNest, once, Things, { prepare: (app) => void app.use(layer) })
    const key = randomUUID()
    for (let i = 0; i < 2; i += 1) {
      const answer = await client.send({ key })
      expect([answer.status, answer.json().code]).toEqual([500, 'handler_failed'])
    }
    expect(runs).toBe(0)
  })
})
