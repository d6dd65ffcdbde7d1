import { type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { describe, expectTypeOf, it } from 'vitest'
import { onlyonce } from '../../../index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import type { IdempotencyContext } from '../../index.ts'
import { type FastifyOptions, idempotency, idempotent } from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const app = fastify()

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

  it('leaves it to the handler to say what its transaction is', () => {
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
