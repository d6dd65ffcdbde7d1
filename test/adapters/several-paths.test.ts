import { randomUUID } from 'node:crypto'
import { Controller, Get, Post, type Type, VERSION_NEUTRAL, VersioningType } from '@nestjs/common'
import express, { type RequestHandler } from 'express'
import { Hono } from 'hono'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent as expressLayer } from '../../src/http/adapters/express/index.ts'
import { idempotent as honoLayer } from '../../src/http/adapters/hono/index.ts'
import { Idempotent } from '../../src/http/adapters/nest/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { hearWarnings } from '../setup/warnings.ts'
import { Client } from './client.ts'
import { expectProblem } from './expectations.ts'
import { listening } from './servers/listen.ts'
import { onExpress } from './servers/nest.ts'
import { openApp, PLATFORMS } from './servers/nest-app.ts'

/** One handler at several places: one key must not run it once at each. */
let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const account = () => 'acct_1'
const NOTHING_BEGUN = { code: 'operation_ambiguous', retryable: true, executed: 'not_by_this_request' }

describe('Hono', () => {
  const layer = (options = {}) => honoLayer(shop.open(), { account, ...options })
  async function at(app: Hono, path: string, key: string) {
    const response = await app.request(path, { method: 'POST', headers: { 'idempotency-key': key } })
    return { status: response.status, ...((await response.json()) as object) }
  }

  const counted = () => {
    const runs = { count: 0 }
    const handler = (c: { json(body: object, status: 201): Response }) => {
      runs.count += 1
      return c.json({}, 201)
    }
    return { runs, handler }
  }

  const APPS: readonly (readonly [string, (handler: never) => Hono])[] = [
    ['a list of paths', (handler) => new Hono().on('POST', ['/a', '/b'], layer(), handler) as never],
    [
      'a list behind app.use',
      (handler) => new Hono().use('*', layer()).on('POST', ['/a', '/b'], handler) as never,
    ],
    [
      'a sub-app in two places',
      (handler) => {
        const things = new Hono().onError((error) => {
          throw error
        })
        things.post('/', layer(), handler)
        return new Hono().route('/a', things).route('/b', things)
      },
    ],
  ]

  test.each(APPS)('%s: once both were met, none of them runs', async (_, open) => {
    const told = hearWarnings('OnlyonceMistakeWarning')
    const { runs, handler } = counted()
    const app = open(handler as never)
    const key = randomUUID()
    expect((await at(app, '/a', key)).status).toBe(201)
    expect(await at(app, '/b', key)).toMatchObject({ status: 500, ...NOTHING_BEGUN })
    expect(await at(app, '/a', randomUUID())).toMatchObject({ status: 500, ...NOTHING_BEGUN })
    expect(runs.count).toBe(1)
    const warnings = ['/b', '/a'].map((path) =>
      expect.stringMatching(new RegExp(`^POST ${path}: operation_ambiguous.*Pass operation.*See /a, /b\\.`)),
    )
    await expect.poll(() => told).toEqual(warnings)
  })

  test('with an operation a key of one path is reused at the other', async () => {
    const { runs, handler } = counted()
    const named = layer({ operation: 'things.create' })
    const app = new Hono().on('POST', ['/a', '/b'], named, handler as never) as unknown as Hono
    const key = randomUUID()
    expect((await at(app, '/a', key)).status).toBe(201)
    expect(await at(app, '/b', key)).toMatchObject({ status: 422, code: 'key_reused' })
    expect((await at(app, '/b', randomUUID())).status).toBe(201)
    expect(runs.count).toBe(2)
  })

  test('one layer and one validator before several handlers: each is an operation of its own', async () => {
    const shared = layer()
    const validator = (_: unknown, next: () => Promise<void>) => next()
    const { runs, handler } = counted()
    const app = new Hono()
    app.post('/a', shared, validator, (c) => handler(c))
    app.post('/b', shared, validator, (c) => handler(c))
    app.post('*', (c) => handler(c))
    const key = randomUUID()
    for (const path of ['/a', '/b', '/a', '/b']) expect((await at(app, path, key)).status).toBe(201)
    expect(runs.count).toBe(2)
  })

  test('a stranger, who is refused, stops nothing', async () => {
    const { handler } = counted()
    let whose: string | null = 'acct_1'
    const own = layer({ account: () => whose })
    const app = new Hono().on('POST', ['/a', '/b'], own, handler as never) as unknown as Hono
    expect((await at(app, '/a', randomUUID())).status).toBe(201)
    whose = null
    expect((await at(app, '/b', randomUUID())).status).toBe(401)
    whose = 'acct_1'
    expect((await at(app, '/a', randomUUID())).status).toBe(201)
  })
})

test('Express: a list of paths is one operation, and a key of one path is reused at the other', async () => {
  let runs = 0
  const app = express()
  const layer = expressLayer(shop.open(), { account }) as unknown as RequestHandler
  app.post(['/a', '/b'], layer, (_, response) => {
    runs += 1
    response.status(201).json({})
  })
  const server = await listening((await import('node:http')).createServer(app))
  cleanUpLater(() => server.close())
  const client = new Client(server.port)
  const key = randomUUID()
  expect((await client.send({ key, path: '/a' })).status).toBe(201)
  expectProblem(await client.send({ key, path: '/b' }), 'key_reused')
  expect(runs).toBe(1)
})

describe('NestJS', () => {
  test('a list of paths without an operation is refused at the start', async () => {
    @Controller('things')
    class OnHandler {
      @Post(['a', 'b'])
      @Idempotent()
      create() {}
    }
    @Controller(['a', 'b'])
    class OnController {
      @Post()
      @Idempotent()
      create() {}
    }
    const start = (controller: Type) => openApp(onExpress, shop.open(), controller)
    const refused = (title: string) => ({
      code: 'operation_ambiguous',
      message: expect.stringContaining(title),
    })
    await expect(start(OnHandler)).rejects.toMatchObject(refused('See OnHandler.create: a, b.'))
    await expect(start(OnController)).rejects.toMatchObject(refused('See OnController.create: a, b.'))
  })

  test('what is named, or not protected, may have a list', async () => {
    @Controller('things')
    @Idempotent()
    class Things {
      @Get(['a', 'b'])
      read() {
        return {}
      }
      @Post(['a', 'b'])
      @Idempotent({ operation: 'things.create' })
      create() {
        return {}
      }
    }
    const client = await openApp(onExpress, shop.open(), Things)
    const key = randomUUID()
    expect((await client.send({ method: 'GET', path: '/things/b' })).status).toBe(200)
    expect((await client.send({ key, path: '/things/a' })).status).toBe(201)
    expectProblem(await client.send({ key, path: '/things/b' }), 'key_reused')
  })

  test.each(PLATFORMS)(
    '$platform: versions in the path: once both were met, none of them runs',
    async ({ create }) => {
      hearWarnings('OnlyonceMistakeWarning')
      let runs = 0
      @Controller({ path: 'things', version: ['1', VERSION_NEUTRAL] })
      class Things {
        @Post()
        @Idempotent()
        create() {
          runs += 1
          return {}
        }
      }
      const prepare = (app: { enableVersioning(options: { type: VersioningType.URI }): unknown }) =>
        void app.enableVersioning({ type: VersioningType.URI })
      const client = await openApp(create, shop.open(), Things, { prepare })
      const key = randomUUID()
      expect((await client.send({ key, path: '/v1/things' })).status).toBe(201)
      expectProblem(await client.send({ key, path: '/things' }), 'operation_ambiguous')
      expect(runs).toBe(1)
    },
  )
})
