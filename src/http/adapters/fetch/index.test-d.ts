import { describe, expectTypeOf, it } from 'vitest'
import { operation as durable, onlyonce, reply } from '../../../index.ts'
import { memory } from '../../../store/memory/index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import { type IdempotencyContext, idempotent } from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const account = () => 'acct_1'
const operation = 'orders.create'

/** What Next.js checks of an exported route. */
type NextRoute<Params> = (request: Request, context: { params: Promise<Params> }) => Promise<Response>

describe('a protected handler', () => {
  it('is given the tx of its store, or null for a request that is not protected', () => {
    idempotent(once, { account, operation }, (request, context) => {
      expectTypeOf(request).toEqualTypeOf<Request>()
      expectTypeOf(context.idempotency).toEqualTypeOf<IdempotencyContext<PostgresTx> | null>()
      return new Response()
    })
    const unsure = onlyonce({ store: memory(), secret: '' })
    idempotent(unsure, { account, operation }, (_, { idempotency }) => {
      expectTypeOf(idempotency?.tx).not.toHaveProperty('query')
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
      idempotency: IdempotencyContext<PostgresTx> | null
    }
    const POST = idempotent(once, { account, operation }, async (_: Request, { params }: Context) => {
      expectTypeOf(await params).toEqualTypeOf<{ id: string }>()
      return new Response()
    })
    expectTypeOf(POST).toExtend<NextRoute<{ id: string }>>()
    expectTypeOf(POST).not.toExtend<NextRoute<{ name: string }>>()
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
  })
})

describe('a route of a durable operation', () => {
  it('is given what it takes, and has its own protection', () => {
    const pay = durable('payments.create', async (_op, input: { amount: number }) => reply(201, input))
    idempotent(once, { account, operation: pay, input: () => ({ amount: 5 }) }, () => new Response())
    // @ts-expect-error an amount is a number
    idempotent(once, { account, operation: pay, input: () => ({ amount: '5' }) }, () => new Response())
    // @ts-expect-error an operation brings its own
    idempotent(once, { account, operation: pay, protect: 'transaction' }, () => new Response())
  })
})
