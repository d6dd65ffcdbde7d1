import { type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { onlyonce, operation, reply } from '../../../index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import type { IdempotencyContext, RequestContext } from '../../index.ts'
import { type FastifyOptions, idempotency, idempotent } from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const app = fastify()

describe('a handler that is passed to idempotent()', () => {
  it('is given tx exactly where its route has a transaction, and what its schema makes of the body', () => {
    app.post(
      '/a',
      idempotent({ protect: 'transaction' }, async (_request, reply, { tx }) => {
        expectTypeOf(tx).toEqualTypeOf<PostgresTx>()
        const { rows } = await tx.query('SELECT 1')
        return reply.code(201).send(rows[0])
      }),
    )
    app.post(
      '/b',
      idempotent({ account: 'acme' }, async (_request, _reply, context) => {
        expectTypeOf(context).toEqualTypeOf<RequestContext>()
      }),
    )
    app.post(
      '/c',
      idempotent({ key: 'optional' }, async (_request, _reply, context) => {
        expectTypeOf(context).toEqualTypeOf<RequestContext | null>()
      }),
    )
    const validate = z.object({ amount: z.number() })
    app.post(
      '/d',
      idempotent({ validate }, async (_request, _reply, { input }) => {
        expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
      }),
    )
  })

  it('has the request that it says, with other options of the route beside it', () => {
    interface Order {
      Body: { item: string }
      Params: { id: string }
    }
    app.post<Order>(
      '/orders/:id',
      idempotent({}, async (request: FastifyRequest<Order>) => {
        expectTypeOf(request.body.item).toEqualTypeOf<string>()
        expectTypeOf(request.params.id).toEqualTypeOf<string>()
      }),
    )
    const schema = { body: { type: 'object' } }
    app.post('/e', { schema, bodyLimit: 5, ...idempotent({}, async (request) => request.headers) })
    app.route({ method: 'POST', url: '/f', ...idempotent({}, async () => ({})) })
  })
})

describe('a route of a durable operation', () => {
  const pay = operation('payments.create', async (_op, input: { amount: number }) => reply(201, input))

  it('is given what it takes, has its own protection, and takes no handler', () => {
    app.post('/g', idempotent({ operation: pay, input: () => ({ amount: 5 }) }))
    app.post('/h', { bodyLimit: 5, ...idempotent({ operation: pay }) })
    // @ts-expect-error an amount is a number
    idempotent({ operation: pay, input: () => ({ amount: '5' }) })
    // @ts-expect-error an operation brings its own
    idempotent({ operation: pay, protect: 'transaction' })
    // @ts-expect-error an operation answers by itself
    idempotent({ operation: pay }, async () => ({}))
    // @ts-expect-error and it is no hook before a handler
    app.post('/i', { preHandler: idempotent({ operation: pay }) }, async () => ({}))
  })
})

describe('the plugin for Fastify', () => {
  it('tells handlers of request.idempotency, which is not there where a request is not protected', () => {
    app.post('/orders', { preHandler: idempotent() }, async (request) => {
      // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
      expectTypeOf(request.idempotency).toEqualTypeOf<IdempotencyContext<any> | undefined>()
      expectTypeOf(request.idempotency!.account).toEqualTypeOf<string>()
      expectTypeOf(request.idempotency!.signal).toEqualTypeOf<AbortSignal>()
      // @ts-expect-error it may be missing
      request.idempotency.notExecuted()
    })
  })

  it('leaves it to a handler behind the hook to say what its transaction is', () => {
    app.post('/transfers', { preHandler: idempotent({ protect: 'transaction' }) }, async (request) => {
      const { tx }: IdempotencyContext<PostgresTx> = request.idempotency!
      expectTypeOf(tx).toEqualTypeOf<PostgresTx>()
      const { rows } = await tx.query('SELECT 1')
      return rows[0]
    })
  })

  it('stands among the hooks of routes of every type', () => {
    interface Order {
      Body: { item: string }
      Params: { id: string }
    }
    const refuse = async (_request: FastifyRequest, _reply: FastifyReply) => {}
    app.post<Order>('/orders/:id', { preHandler: [refuse, idempotent()] }, async (request) => {
      expectTypeOf(request.body.item).toEqualTypeOf<string>()
      expectTypeOf(request.params.id).toEqualTypeOf<string>()
    })
    app.route<Order>({ method: 'POST', url: '/', preHandler: idempotent(), handler: async () => {} })
  })

  it('is registered with a front door and an account', () => {
    app.register(idempotency, { once, account: () => 'acct_1' })
    app.register(idempotency, { once, account: 'acme' })
    app.register(idempotency, {
      once,
      account: (request) => {
        expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
        return request.headers.authorization
      },
    })
    app.register(idempotency, {
      once,
      account: async (request: FastifyRequest) => request.ip,
      leaseMs: 1_000,
    })
    const options: FastifyOptions<PostgresTx> = { once, account: (request) => request.headers.authorization }
    app.register(idempotency, options)
    // @ts-expect-error an operation is that of one route
    ;({ once, account: () => '', operation: 'orders.create' }) satisfies FastifyOptions<PostgresTx>
    // @ts-expect-error whose request is it?
    app.register(idempotency, { once })
    // @ts-expect-error there is no such protection
    idempotent({ protect: 'luck' })
  })
})
