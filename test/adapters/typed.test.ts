import 'reflect-metadata'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Controller, Post, Put, Req, Res, type Type } from '@nestjs/common'
import express5 from 'express'
import express4 from 'express4'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { idempotent as onExpress } from '../../src/http/adapters/express/index.ts'
import { idempotency, idempotent as onFastify } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as onFetch } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as onHono } from '../../src/http/adapters/hono/index.ts'
import { Idempotency, Idempotent, OnlyonceModule, Tx } from '../../src/http/adapters/nest/index.ts'
import { idempotent as onNode } from '../../src/http/adapters/node/index.ts'
import type { RequestContext } from '../../src/http/index.ts'
import { type Onlyonce, operation, reply } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { leaveEffect, openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { Client } from './client.ts'
import { expectProblem, expectReplay } from './expectations.ts'
import { listen } from './servers/fetch.ts'
import { listening } from './servers/listen.ts'
import { openApp, PLATFORMS } from './servers/nest-app.ts'

/** What routes ask for: one name for all, because a path alone names nothing in node:http and fetch. */
const TRANSFER = { account: 'acme', operation: 'transfers.create', protect: 'transaction' } as const
const AMOUNT = z.object({ amount: z.string().transform(Number) })
const VALIDATED = { account: 'acme', operation: 'amounts.create', validate: AMOUNT } as const
const OPTIONAL = { account: 'acme', operation: 'options.create', key: 'optional' } as const
const pay = operation('payments.create', async (op, input: { amount: number }) =>
  op.transaction('paid', async (tx) => {
    await leaveEffect(tx, op.key)
    return reply(201, { paid: input.amount })
  }),
)
const PAY = { account: 'acme', operation: pay } as const

interface Answered {
  readonly status: number
  readonly value: unknown
}

/** What the handlers do, in every framework. `fail` comes from the body of the request. */
async function transfer(tx: PostgresTx, key: string, fail: boolean): Promise<Answered> {
  await leaveEffect(tx, key)
  if (fail) throw new Error('the handler failed')
  return { status: 201, value: { moved: key } }
}
const showInput = (input: { amount: number }): Answered => ({
  status: 201,
  value: { twice: input.amount * 2 },
})
const showContext = (context: RequestContext | null | undefined): Answered => ({
  status: 201,
  value: { key: context?.key ?? null },
})

/** Serves POST and PUT /transfers, POST /amounts, POST /options and POST and PUT /payments, with typed handlers. */
type Serve = (once: Onlyonce<PostgresTx>) => Promise<Client>

const express =
  (make: typeof express5): Serve =>
  async (once) => {
    const app = make()
    app.set('env', 'test')
    const moved = onExpress(once, TRANSFER, async (_req, res, { tx, key }) => {
      const { status, value } = await transfer(tx, key, _req.get('x-fail') === 'yes')
      res.status(status).json(value)
    })
    app.post('/transfers', moved).put('/transfers', moved)
    app.post(
      '/amounts',
      onExpress(once, VALIDATED, (_req, res, { input }) => {
        const { status, value } = showInput(input)
        res.status(status).json(value)
      }),
    )
    app.post(
      '/options',
      onExpress(once, OPTIONAL, (_req, res, context) => {
        const { status, value } = showContext(context)
        res.status(status).json(value)
      }),
    )
    app.post('/payments', onExpress(once, PAY))
    return open(await listening(createServer(app)))
  }

const SERVERS: readonly (readonly [string, Serve])[] = [
  ['Express 5', express(express5)],
  ['Express 4', express(express4 as unknown as typeof express5)],
  [
    'Fastify',
    async (once) => {
      const app = fastify({ forceCloseConnections: true })
      await app.register(idempotency, { once, account: 'acme' })
      const { account: _, ...policy } = TRANSFER
      app.route({
        method: ['POST', 'PUT'],
        url: '/transfers',
        // A hook of the application's own does not take the place of the protection.
        preHandler: async () => {},
        ...onFastify(policy, async (request, reply, { tx, key }) => {
          const { status, value } = await transfer(tx, key, request.headers['x-fail'] === 'yes')
          return await reply.code(status).send(value)
        }),
      })
      app.post(
        '/amounts',
        onFastify(VALIDATED, async (_request, reply, { input }) => {
          const { status, value } = showInput(input)
          return await reply.code(status).send(value)
        }),
      )
      app.post(
        '/options',
        onFastify(OPTIONAL, async (_request, reply, context) => {
          const { status, value } = showContext(context)
          return await reply.code(status).send(value)
        }),
      )
      app.route({ method: ['POST', 'PUT'], url: '/payments', ...onFastify({ operation: pay }) })
      await app.listen({ port: 0, host: '127.0.0.1' })
      cleanUpLater(() => app.close())
      return new Client((app.server.address() as AddressInfo).port)
    },
  ],
  [
    'Hono',
    async (once) => {
      const app = new Hono()
      app.on(['POST', 'PUT'], '/transfers', onHono(once, TRANSFER), async (c) => {
        const { tx, key } = c.var.idempotency
        const { status, value } = await transfer(tx, key, c.req.header('x-fail') === 'yes')
        return c.json(value as object, status as 201)
      })
      app.post('/amounts', onHono(once, VALIDATED), (c) => {
        const { status, value } = showInput(c.var.idempotency.input)
        return c.json(value as object, status as 201)
      })
      app.post('/options', onHono(once, OPTIONAL), (c) => {
        const { status, value } = showContext(c.var.idempotency)
        return c.json(value as object, status as 201)
      })
      app.post('/payments', onHono(once, PAY))
      app.onError((_, c) => c.text('Error', 500))
      return open(await listen(app.fetch))
    },
  ],
  [
    'fetch',
    async (once) => {
      const at = {
        '/transfers': onFetch(once, TRANSFER, async (request, { tx, idempotency: { key } }) => {
          const { status, value } = await transfer(tx, key, request.headers.get('x-fail') === 'yes')
          return Response.json(value, { status })
        }),
        '/amounts': onFetch(once, VALIDATED, (_, { idempotency: { input } }) => {
          const { status, value } = showInput(input)
          return Response.json(value, { status })
        }),
        '/options': onFetch(once, OPTIONAL, (_, { idempotency }) => {
          const { status, value } = showContext(idempotency)
          return Response.json(value, { status })
        }),
        '/payments': onFetch(once, PAY),
      }
      const answer = async (request: Request) => {
        const handler = at[new URL(request.url).pathname as keyof typeof at]
        return await handler(request).catch(() => new Response('Error', { status: 500 }))
      }
      return open(await listen(answer))
    },
  ],
  [
    'node:http',
    async (once) => {
      const at = {
        '/transfers': onNode(once, TRANSFER, async (request, response, { tx, key }) => {
          const { status, value } = await transfer(tx, key, request.headers['x-fail'] === 'yes')
          response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
        }),
        '/amounts': onNode(once, VALIDATED, (_, response, { input }) => {
          const { status, value } = showInput(input)
          response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
        }),
        '/options': onNode(once, OPTIONAL, (_, response, context) => {
          const { status, value } = showContext(context)
          response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
        }),
        '/payments': onNode(once, PAY),
      }
      return open(await listening(createServer((a, b) => at[a.url as keyof typeof at](a, b))))
    },
  ],
  ...PLATFORMS.map(({ platform, create }): readonly [string, Serve] => [
    `NestJS on ${platform}`,
    (once) =>
      openApp(create, once, {
        imports: [OnlyonceModule.forRoot({ once, account: 'acme' })],
        controllers: [nestController()],
      }),
  ]),
]

function nestController(): Type {
  const { account: _, ...policy } = TRANSFER
  const [{ account: __, ...validated }, { account: ___, ...optional }] = [VALIDATED, OPTIONAL]
  type Sent = { readonly headers: Readonly<Record<string, string>> }

  @Controller()
  class Things {
    @Post('transfers')
    @Idempotent(policy)
    async transfer(@Req() { headers }: Sent, @Tx() tx: PostgresTx, @Idempotency() { key }: RequestContext) {
      return (await transfer(tx, key, headers['x-fail'] === 'yes')).value
    }

    @Put('transfers')
    @Idempotent(policy)
    async put(@Req() { headers }: Sent, @Tx() tx: PostgresTx) {
      return (await transfer(tx, headers['idempotency-key']!, false)).value
    }

    @Post('amounts')
    @Idempotent(validated)
    amount(@Idempotency() { input }: { readonly input: { amount: number } }) {
      return showInput(input).value
    }

    @Post('options')
    @Idempotent(optional)
    option(@Idempotency() context: RequestContext | undefined) {
      return showContext(context).value
    }

    @Post('payments')
    @Idempotent({ operation: pay })
    pay(): void {}

    @Put('payments')
    @Idempotent({ operation: pay })
    putPayment(): void {}
  }
  return Things
}

function open({ port, close }: { readonly port: number; close(): Promise<void> }): Client {
  cleanUpLater(close)
  return new Client(port)
}

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

describe.each(SERVERS)('%s: a typed handler', (name, serve) => {
  let client: Client
  beforeAll(async () => {
    client = await serve(shop.open({ operations: [pay] }))
  })
  const keyOf = (what: string) => `${what}-${name.replaceAll(/\W/g, '-')}-123456`

  it('works on the transaction of its record: one commit, and a replay', async () => {
    const sent = { path: '/transfers', key: keyOf('moved'), account: null }
    const first = await client.send(sent)
    expect([first.status, first.json()]).toEqual([201, { moved: sent.key }])
    expectReplay(first, await client.send(sent))
    expect(await shop.countEffects(sent.key)).toBe(1)
  })

  it('that throws is rolled back, and the same request runs', async () => {
    const sent = { path: '/transfers', key: keyOf('failed'), account: null }
    expect((await client.send({ ...sent, headers: { 'x-fail': 'yes' } })).status).toBe(500)
    expect(await shop.countEffects(sent.key)).toBe(0)
    expect((await client.send(sent)).status).toBe(201)
    expect(await shop.countEffects(sent.key)).toBe(1)
  })

  it('is given what its schema made of the body', async () => {
    const sent = { path: '/amounts', key: keyOf('amount'), account: null, body: { amount: '21' } }
    expect((await client.send(sent)).json()).toEqual({ twice: 42 })
  })

  it('is given no context for a request without a key, where keys are optional', async () => {
    const sent = { path: '/options', account: null }
    expect((await client.send({ ...sent, key: null })).json()).toEqual({ key: null })
    expect((await client.send({ ...sent, key: keyOf('given') })).json()).toEqual({ key: keyOf('given') })
  })

  it('that asks for its transaction on a method that is not protected does nothing', async () => {
    const sent = { method: 'PUT', path: '/transfers', key: keyOf('put'), account: null }
    expect((await client.send(sent)).status).toBe(500)
    expect(await shop.countEffects(sent.key)).toBe(0)
  })

  it('is not needed for a durable operation, which passes nothing on', async () => {
    const sent = { path: '/payments', key: keyOf('paid'), account: null, body: { amount: 5 } }
    const first = await client.send(sent)
    expect([first.status, first.json()]).toEqual([201, { paid: 5 }])
    expectReplay(first, await client.send(sent))
    expectProblem(await client.send({ ...sent, key: null }), 'key_missing')
    const put = await client.send({ ...sent, method: 'PUT', key: keyOf('put-payment') })
    expect([404, 405]).toContain(put.status)
    expect(await shop.countEffects(keyOf('put-payment'))).toBe(0)
  })
})

describe('what no request has to find out', () => {
  const handler = () => new Response()

  it('a handler beside a durable operation, and one that is missing', () => {
    const once = shop.open()
    const twice = { code: 'option_invalid', message: expect.stringContaining('it takes no handler') }
    const makes = [onExpress, onNode, onFetch] as unknown as ((...given: unknown[]) => unknown)[]
    for (const make of makes) expect(() => make(once, PAY, handler)).toThrow(expect.objectContaining(twice))
    expect(() => (onFastify as (...given: unknown[]) => unknown)({ operation: pay }, handler)).toThrow(
      expect.objectContaining(twice),
    )
    const none = { code: 'option_invalid', message: expect.stringContaining('the handler is a function') }
    for (const make of [onNode, onFetch] as unknown as typeof makes)
      expect(() => make(once, OPTIONAL)).toThrow(expect.objectContaining(none))
  })

  it.each(PLATFORMS)('NestJS on $platform: @Tx() without a transaction', async ({ create }) => {
    @Controller()
    class Things {
      @Post('things')
      @Idempotent()
      create(@Tx() tx: PostgresTx, @Res() _: unknown) {
        return tx
      }
    }
    await expect(openApp(create, shop.open(), Things)).rejects.toMatchObject({
      code: 'option_invalid',
      message: expect.stringContaining('Things.create: @Tx() needs a transaction.'),
    })
  })
})

it('Fastify: a route that the plugin has not seen runs nothing', async () => {
  const app = fastify()
  let runs = 0
  app.post(
    '/things',
    onFastify({}, async () => ++runs),
  )
  await app.register(idempotency, { once: shop.open(), account: 'acme' })
  const answer = await app.inject({ method: 'POST', url: '/things' })
  expect([answer.statusCode, runs]).toEqual([500, 0])
})
