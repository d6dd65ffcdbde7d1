import { randomUUID } from 'node:crypto'
import { Controller, Post, VERSION_NEUTRAL, VersioningType } from '@nestjs/common'
import { type FastifyPluginCallback, fastify } from 'fastify'
import { Hono } from 'hono'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as fetchLayer } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as honoLayer } from '../../src/http/adapters/hono/index.ts'
import { Idempotency, type IdempotencyContext, Idempotent } from '../../src/http/adapters/nest/index.ts'
import { idempotent as nodeLayer } from '../../src/http/adapters/node/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { Client } from './client.ts'
import { expectProblem, expectReplay } from './expectations.ts'
import { openApp, PLATFORMS } from './servers/nest-app.ts'

/** What else than its path a route may be found by, and what an operation is then called. */
let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const account = () => 'acct_1'

describe('Fastify', () => {
  async function start(build: FastifyPluginCallback, constraints?: object) {
    const app = fastify({
      forceCloseConnections: true,
      ...(constraints && { routerOptions: { constraints } }),
    } as object)
    cleanUpLater(() => app.close())
    await app.register(idempotency, { once: shop.open(), account })
    await app.register(build)
    await app.listen({ port: 0, host: '127.0.0.1' })
    return new Client((app.server.address() as { port: number }).port)
  }

  test('a route of each host is an operation of its own', async () => {
    const client = await start((app, _, done) => {
      for (const host of ['a.example.com', 'b.example.com']) {
        app.post('/things', { constraints: { host }, preHandler: idempotent() }, async (request) => ({
          host,
          operation: request.idempotency?.operation,
        }))
      }
      done()
    })
    const key = randomUUID()
    const at = (host: string) => client.send({ key, headers: { host } })
    const first = await at('a.example.com')
    expect(first.json()).toEqual({ host: 'a.example.com', operation: 'POST /things; host=a.example.com' })
    const other = await at('b.example.com')
    expect(other.json()).toEqual({ host: 'b.example.com', operation: 'POST /things; host=b.example.com' })
    expectReplay(first, await at('a.example.com'))
    expectReplay(other, await at('b.example.com'))
  })

  test('a route of each version is an operation of its own; ranges of versions find it', async () => {
    const client = await start((app, _, done) => {
      for (const version of ['1.2.0', '2.0.0']) {
        app.post('/things', { constraints: { version }, preHandler: idempotent() }, async (request) => ({
          operation: request.idempotency?.operation,
        }))
      }
      done()
    })
    const key = randomUUID()
    const at = (version: string) => client.send({ key, headers: { 'accept-version': version } })
    const first = await at('1.2.0')
    expect(first.json()).toEqual({ operation: 'POST /things; version=1.2.0' })
    expect((await at('2.x')).json()).toEqual({ operation: 'POST /things; version=2.0.0' })
    expectReplay(first, await at('1.x'))
  })

  test('one route for many hosts: a key of one host is reused at another', async () => {
    let runs = 0
    const client = await start((app, _, done) => {
      const constraints = { host: /^\w+\.example\.com$/ }
      app.post('/things', { constraints, preHandler: idempotent() }, async (request) => {
        runs += 1
        return { operation: request.idempotency?.operation }
      })
      done()
    })
    const key = randomUUID()
    const at = (host: string) => client.send({ key, headers: { host } })
    const first = await at('a.example.com')
    expect(first.json()).toEqual({ operation: 'POST /things; host=/^\\w+\\.example\\.com$/' })
    expectProblem(await at('b.example.com'), 'key_reused')
    expectReplay(first, await at('a.example.com'))
    expect(runs).toBe(1)
  })

  test('a name stands for several routes: then the constraint counts in the fingerprint', async () => {
    let runs = 0
    const client = await start((app, _, done) => {
      for (const version of ['1.0.0', '2.0.0']) {
        const preHandler = idempotent({ operation: 'things.create' })
        app.post('/things', { constraints: { version }, preHandler }, async () => ({ runs: ++runs }))
      }
      done()
    })
    const key = randomUUID()
    const at = (version: string) => client.send({ key, headers: { 'accept-version': version } })
    const first = await at('1.0.0')
    expectProblem(await at('2.0.0'), 'key_reused')
    expectReplay(first, await at('1.0.0'))
    expect(runs).toBe(1)
  })

  test('strategies of the application count as well, and so do prefixes', async () => {
    const kind = {
      name: 'kind',
      storage: () => {
        const stored = new Map<unknown, unknown>()
        return {
          get: (key: unknown) => stored.get(key) ?? null,
          set: (key: unknown, value: unknown) => stored.set(key, value),
        }
      },
      deriveConstraint: (request: { headers: Record<string, unknown> }) => request.headers['x-kind'],
    }
    const client = await start(
      (app, _, done) => {
        app.register(
          async (scope) => {
            for (const one of ['live', 'a test']) {
              scope.post(
                '/things',
                { constraints: { kind: one }, preHandler: idempotent() },
                async (request) => ({
                  operation: request.idempotency?.operation,
                }),
              )
            }
          },
          { prefix: '/v1' },
        )
        done()
      },
      { kind },
    )
    const at = async (one: string) =>
      (await client.send({ path: '/v1/things', headers: { 'x-kind': one } })).json().operation
    expect(await at('live')).toBe('POST /v1/things; kind=live')
    expect(await at('a test')).toBe('POST /v1/things; kind="a test"')
  })
})

describe.each(PLATFORMS)('NestJS on $platform', ({ create }) => {
  test('versions that a header asks for are operations of their own', async () => {
    @Controller({ path: 'things', version: '1' })
    class First {
      @Post()
      @Idempotent()
      create(@Idempotency() once: IdempotencyContext<unknown>) {
        return { version: 1, operation: once.operation }
      }
    }
    @Controller({ path: 'things', version: ['2', VERSION_NEUTRAL] })
    class Second {
      @Post()
      @Idempotent()
      create(@Idempotency() once: IdempotencyContext<unknown>) {
        return { version: 2, operation: once.operation }
      }
    }
    const client = await openApp(
      create,
      shop.open(),
      { controllers: [First, Second] },
      {
        prepare: (app) =>
          void app
            .setGlobalPrefix('api')
            .enableVersioning({ type: VersioningType.HEADER, header: 'x-version' }),
      },
    )
    const key = randomUUID()
    const at = (version: string) =>
      client.send({ key, path: '/api/things', headers: { 'x-version': version } })
    const first = await at('1')
    expect(first.json()).toEqual({ version: 1, operation: 'POST /api/things; version=1' })
    const second = await at('2')
    expect(second.json().version).toBe(2)
    expect(second.json().operation).toMatch(/^POST \/api\/things; version=\["2",/)
    expectReplay(first, await at('1'))
  })

  test('a controller that is bound to hosts: a key of one host is reused at another', async () => {
    let runs = 0
    @Controller({ path: 'things', host: ':tenant.example.com' })
    class Things {
      @Post()
      @Idempotent()
      create(@Idempotency() once: IdempotencyContext<unknown>) {
        runs += 1
        return { operation: once.operation }
      }
    }
    const client = await openApp(create, shop.open(), Things)
    const key = randomUUID()
    const at = (host: string) => client.send({ key, headers: { host } })
    const first = await at('a.example.com')
    expect(first.json()).toEqual({ operation: 'POST /things; host=:tenant.example.com' })
    expectProblem(await at('b.example.com'), 'key_reused')
    expect(runs).toBe(1)
  })
})

test('Hono: base paths, sub-apps and what is before all routes go by the pattern of the route', async () => {
  const layer = honoLayer(shop.open(), { account })
  const app = new Hono().basePath('/api')
  const shops = new Hono()
  shops.post('/orders/:id', layer, (c) => c.text(c.var.idempotency!.operation))
  app.route('/shops/:shop', shops)
  app.use('/behind/*', layer)
  app.post('/behind/:id', (c) =>
    c.text((c.get('idempotency' as never) as IdempotencyContext<unknown>).operation),
  )
  const at = async (path: string) => {
    const headers = { 'idempotency-key': randomUUID() }
    return await (await app.request(path, { method: 'POST', headers })).text()
  }
  expect(await at('/api/shops/a/orders/7')).toBe('POST /api/shops/:shop/orders/:id')
  expect(await at('/api/shops/%61/orders/%37')).toBe('POST /api/shops/:shop/orders/:id')
  expect(await at('/api/behind/7')).toBe('POST /api/behind/:id')
})

test('a plain handler has no pattern: without a name it is refused when it is made', () => {
  const once = shop.open()
  const options = { account } as never
  expect(() => nodeLayer(once, options, () => {})).toThrow(/needs a name.*node:http/)
  expect(() => fetchLayer(once, options, () => new Response())).toThrow(/needs a name.*fetch/)
})
