import { Hono } from 'hono'
import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import type { StandardSchema } from '../../../core/standard-schema.ts'
import { onlyonce, operation, reply } from '../../../index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import {
  type IdempotencyContext,
  type IdempotencyVariables,
  idempotent,
  type RequestContext,
} from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })

describe('the middleware for Hono', () => {
  const account = () => 'acct_1'

  it('tells the handlers behind it of its variable, beside those of the application', () => {
    const app = new Hono<{ Variables: { user: { account: string } } }>()
    app.post('/orders/:id', idempotent(once, { account }), (c) => {
      expectTypeOf(c.get('idempotency')).toEqualTypeOf<RequestContext>()
      expectTypeOf(c.var.idempotency).not.toHaveProperty('tx')
      expectTypeOf(c.get('user')).toEqualTypeOf<{ account: string }>()
      expectTypeOf(c.req.param('id')).toEqualTypeOf<string>()
      return c.json({})
    })
  })

  it('gives tx exactly where the route has a transaction, and what its schema makes of the body', () => {
    const app = new Hono()
    const validate = z.object({ amount: z.number() })
    app.post('/a', idempotent(once, { account, protect: 'transaction' }), async (c) => {
      expectTypeOf(c.var.idempotency.tx).toEqualTypeOf<PostgresTx>()
      return c.json({})
    })
    app.post('/b', idempotent(once, { account: 'acme', validate }), (c) => {
      expectTypeOf(c.var.idempotency.input).toEqualTypeOf<{ amount: number }>()
      return c.json({})
    })
    app.post('/c', idempotent(once, { account, key: 'optional' }), (c) => {
      expectTypeOf(c.var.idempotency).toEqualTypeOf<RequestContext | undefined>()
      return c.json({})
    })
  })

  it('goes before all routes of an application that knows the variable', () => {
    const app = new Hono<{ Variables: IdempotencyVariables<PostgresTx> }>()
    app.use(idempotent(once, { account, protect: 'transaction' }))
    app.post('/orders', (c) => {
      expectTypeOf(c.var.idempotency).toEqualTypeOf<IdempotencyContext<PostgresTx> | undefined>()
      return c.json({})
    })
  })

  it('asks for the account with the context of the application', () => {
    type AppEnv = { Variables: { user: { account: string } } }
    idempotent<PostgresTx, AppEnv>(once, { account: (c) => c.get('user').account })
    const app = new Hono<AppEnv>()
    app.post('/', idempotent(once, { account: (c) => c.get('user').account }), (c) => c.json({}))
    idempotent(once, { account: async (c) => c.req.header('x-account') })
    // @ts-expect-error whose request is it?
    idempotent(once, {})
  })
})

describe('a route of a durable operation', () => {
  const pay = operation('payments.create', async (_op, input: { amount: number }) => reply(201, input))
  const account = () => 'acct_1'

  it('is given what it takes', () => {
    idempotent(once, { account, operation: pay })
    idempotent(once, { account, operation: pay, input: () => ({ amount: 5 }) })
    idempotent(once, { account, operation: 'payments.create', protect: 'transaction' })
    // @ts-expect-error an amount is a number
    idempotent(once, { account, operation: pay, input: () => ({ amount: '5' }) })
  })

  it('has its own protection', () => {
    // @ts-expect-error an operation brings its own
    idempotent(once, { account, operation: pay, protect: 'transaction' })
  })

  it('is given what a schema makes of the body, unless its input makes something else of that', () => {
    type Schema<Output> = StandardSchema & { '~standard': { types?: { input: string; output: Output } } }
    const [fits, other] = [{} as Schema<{ amount: number }>, {} as Schema<{ amount: string }>]
    idempotent(once, { account, operation: pay, validate: fits })
    idempotent(once, { account, operation: pay, validate: {} as StandardSchema })
    idempotent(once, { account, operation: pay, validate: other, input: () => ({ amount: 5 }) })
    // @ts-expect-error the schema makes what the operation does not take
    idempotent(once, { account, operation: pay, validate: other })
  })
})
