import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { onlyonce, operation, reply } from '../../../index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import { idempotent, type RequestContext } from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const router = new Router()
const account = () => 'acct_1'

describe('a handler that is passed to the layer', () => {
  it('is given tx exactly where its route has a transaction, and what its schema makes of the body', () => {
    router.post(
      '/a',
      idempotent(once, { account, protect: 'transaction' }, async (ctx, { tx }) => {
        expectTypeOf(tx).toEqualTypeOf<PostgresTx>()
        ctx.body = {}
      }),
    )
    idempotent(once, { account: 'acme' }, (_ctx, context) => {
      expectTypeOf(context).toEqualTypeOf<RequestContext>()
    })
    idempotent(once, { account, key: 'optional' }, (_ctx, context) => {
      expectTypeOf(context).toEqualTypeOf<RequestContext | null>()
    })
    idempotent(once, { account, validate: z.object({ amount: z.number() }) }, (_ctx, { input }) => {
      expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
    })
  })

  it('has the context of Koa that it says, and stands in an application too', () => {
    idempotent(once, { account: (ctx: Context) => ctx.get('x-account') }, (ctx) => {
      expectTypeOf(ctx).toEqualTypeOf<Context>()
    })
    new Koa().use(idempotent(once, { account, operation: 'orders.create' }))
  })
})

describe('a route of a durable operation', () => {
  const pay = operation('payments.create', async (_op, input: { amount: number }) => reply(201, input))

  it('is given what it takes, has its own protection, and takes no handler', () => {
    router.post('/b', idempotent(once, { account, operation: pay, input: () => ({ amount: 5 }) }))
    // @ts-expect-error an amount is a number
    idempotent(once, { account, operation: pay, input: () => ({ amount: '5' }) })
    // @ts-expect-error an operation brings its own
    idempotent(once, { account, operation: pay, protect: 'transaction' })
    // @ts-expect-error an operation answers by itself
    idempotent(once, { account, operation: pay }, () => {})
  })
})
