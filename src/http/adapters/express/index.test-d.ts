import type { ServerResponse } from 'node:http'
import express, { type Request } from 'express'
import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { onlyonce, operation, reply } from '../../../index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import { type IdempotencyContext, idempotent, type RequestContext } from './index.ts'

declare global {
  namespace Express {
    interface Request {
      /** As an application declares what its authentication puts there. */
      testUser: { accountId: string }
    }
  }
}

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const app = express()
const account = () => 'acct_1'

describe('a handler that is passed to the layer', () => {
  it('is given tx exactly where its route has a transaction', () => {
    app.post(
      '/a',
      idempotent(once, { account, protect: 'transaction' }, async (_req, res, context) => {
        expectTypeOf(context).toExtend<IdempotencyContext<PostgresTx>>()
        expectTypeOf(context.tx).toEqualTypeOf<PostgresTx>()
        res.status(201).json({})
      }),
    )
    app.post(
      '/b',
      idempotent(once, { account }, (_req, _res, context) => {
        expectTypeOf(context).toEqualTypeOf<RequestContext>()
        // @ts-expect-error this route has no transaction
        context.tx
      }),
    )
    idempotent(once, { account, protect: 'handler' }, (_req, _res, context) => {
      expectTypeOf(context).not.toHaveProperty('tx')
    })
  })

  it('is given null only where a request may come without a key', () => {
    idempotent(once, { account, key: 'optional', protect: 'transaction' }, (_req, _res, context) => {
      expectTypeOf(context).extract<null>().toEqualTypeOf<null>()
      expectTypeOf(context?.tx).toEqualTypeOf<PostgresTx | undefined>()
    })
    idempotent(once, { account, profile: 'stripe_v1' }, (_req, _res, context) => {
      expectTypeOf(context).toEqualTypeOf<RequestContext | null>()
    })
    idempotent(once, { account, profile: 'stripe_v1', key: 'required' }, (_req, _res, context) => {
      expectTypeOf(context).toEqualTypeOf<RequestContext>()
    })
  })

  it('is given what its schema makes of the body', () => {
    const validate = z.object({ amount: z.string().transform(Number) })
    idempotent(once, { account, validate }, (_req, _res, { input }) => {
      expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
    })
    idempotent(once, { account, validate, protect: 'transaction' }, (_req, _res, { input, tx }) => {
      expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
      expectTypeOf(tx).toEqualTypeOf<PostgresTx>()
    })
    idempotent(once, { account }, (_req, _res, context) => {
      expectTypeOf(context).not.toHaveProperty('input')
    })
  })

  it('has the request and the response of Express, or those that it says', () => {
    app.post(
      '/c/:id',
      idempotent(once, { account }, (req: Request<{ id: string }>, res, _context, next) => {
        expectTypeOf(req.params.id).toEqualTypeOf<string>()
        res.status(204).end()
        next()
      }),
    )
  })
})

describe('account', () => {
  it("is asked with the application's own request, or is the only one", () => {
    app.post('/d', idempotent(once, { account: (req) => req.testUser.accountId }), (_req, res) => {
      res.end()
    })
    idempotent(once, { account: async (req) => req.get('x-account') }, () => {})
    idempotent(once, { account: 'acme' })
    // @ts-expect-error an account is a name
    idempotent(once, { account: 5 })
    // @ts-expect-error whose request is it?
    idempotent(once, {})
    // @ts-expect-error there is no such user
    idempotent(once, { account: (req) => req.testUser.name })
  })
})

describe('a route of a durable operation', () => {
  const pay = operation('payments.create', async (_op, input: { amount: number }) => reply(201, input))

  it('is given what it takes, and has its own protection', () => {
    app.post('/e', idempotent(once, { account, operation: pay, input: () => ({ amount: 5 }) }))
    // @ts-expect-error an amount is a number
    idempotent(once, { account, operation: pay, input: () => ({ amount: '5' }) })
    // @ts-expect-error an operation brings its own
    idempotent(once, { account, operation: pay, protect: 'transaction' })
  })

  it('takes no handler', () => {
    // @ts-expect-error an operation answers by itself
    idempotent(once, { account, operation: pay }, (_req: Request, _res: ServerResponse) => {})
  })
})
