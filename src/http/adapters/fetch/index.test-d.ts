import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { operation as durable, onlyonce, type Queryable, reply } from '../../../index.ts'
import { memory } from '../../../store/memory/index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import { type IdempotencyContext, idempotent, type RequestContext } from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const account = () => 'acct_1'
const operation = 'orders.create'

/** What Next.js checks of an exported route. */
type NextRoute<Params> = (request: Request, context: { params: Promise<Params> }) => Promise<Response>

describe('a protected handler', () => {
  it('is given tx exactly where its route has a transaction', () => {
    idempotent(once, { account, operation, protect: 'transaction' }, (request, context) => {
      expectTypeOf(request).toEqualTypeOf<Request>()
      expectTypeOf(context.tx).toEqualTypeOf<PostgresTx>()
      expectTypeOf(context.idempotency.tx).toEqualTypeOf<PostgresTx>()
      return new Response()
    })
    idempotent(once, { account: 'acme', operation }, (_, context) => {
      expectTypeOf(context.idempotency).toEqualTypeOf<RequestContext>()
      expectTypeOf(context).not.toHaveProperty('tx')
      return new Response()
    })
    const unsure = onlyonce({ store: memory(), secret: '' })
    idempotent(unsure, { account, operation, protect: 'transaction' }, (_, { tx }) => {
      expectTypeOf(tx).toEqualTypeOf<Queryable>()
      return new Response()
    })
  })

  it('is given null only where a request may come without a key', () => {
    idempotent(once, { account, operation, key: 'optional', protect: 'transaction' }, (_, given) => {
      expectTypeOf(given.tx).toEqualTypeOf<PostgresTx | null>()
      expectTypeOf(given.idempotency?.tx).toEqualTypeOf<PostgresTx | undefined>()
      return new Response()
    })
  })

  it('is given what its schema makes of the body', () => {
    const validate = z.object({ amount: z.number() })
    idempotent(once, { account, operation, validate }, (_, { idempotency }) => {
      expectTypeOf(idempotency.input).toEqualTypeOf<{ amount: number }>()
      return new Response()
    })
  })

  it('takes the place of the handler', () => {
    const POST = idempotent(once, { account, operation }, async () => new Response())
    expectTypeOf(POST).toExtend<(request: Request) => Promise<Response>>()
    expectTypeOf(POST).toExtend<NextRoute<{ id: string }>>()
  })

  it('knows the parameters that it says it takes', () => {
    interface Context {
      params: Promise<{ id: string }>
      tx: PostgresTx
      idempotency: IdempotencyContext<PostgresTx>
    }
    const handler = async (_: Request, { params }: Context) => Response.json((await params).id)
    const POST = idempotent(once, { account, operation, protect: 'transaction' }, handler)
    expectTypeOf(POST).toExtend<NextRoute<{ id: string }>>()
    expectTypeOf(POST).not.toExtend<NextRoute<{ name: string }>>()
    // @ts-expect-error this route has no transaction, and the handler says that it takes one
    idempotent(once, { account, operation }, handler)
  })

  it('knows the request that its framework gives', () => {
    interface NextRequest extends Request {
      readonly nextUrl: URL
    }
    const POST = idempotent(
      once,
      { account: (request: NextRequest) => request.nextUrl.host, operation },
      (request: NextRequest) => Response.json(request.nextUrl),
    )
    expectTypeOf(POST).parameter(0).toEqualTypeOf<NextRequest>()
  })

  it('needs an account and a name, and answers', () => {
    // @ts-expect-error whose request is it?
    idempotent(once, { operation }, () => new Response())
    // @ts-expect-error what does it do? A plain handler has no pattern that could tell.
    idempotent(once, { account }, () => new Response())
    // @ts-expect-error there is no response
    idempotent(once, { account, operation }, () => {})
    // @ts-expect-error there is no handler
    idempotent(once, { account, operation })
  })
})

describe('a route of a durable operation', () => {
  it('is given what it takes, has its own protection, and takes no handler', () => {
    const pay = durable('payments.create', async (_op, input: { amount: number }) => reply(201, input))
    const POST = idempotent(once, { account, operation: pay, input: () => ({ amount: 5 }) })
    expectTypeOf(POST).toExtend<NextRoute<{ id: string }>>()
    // @ts-expect-error an amount is a number
    idempotent(once, { account, operation: pay, input: () => ({ amount: '5' }) })
    // @ts-expect-error an operation brings its own
    idempotent(once, { account, operation: pay, protect: 'transaction' })
    // @ts-expect-error an operation answers by itself
    idempotent(once, { account, operation: pay }, () => new Response())
  })
})
