import { createServer, type IncomingMessage } from 'node:http'
import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { onlyonce, operation, reply } from '../../../index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import { idempotent, type RequestContext } from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const account = () => 'acct_1'

describe('a handler', () => {
  const name = 'orders.create'

  it('is given tx exactly where its route has a transaction, and what its schema makes of the body', () => {
    createServer(
      idempotent(once, { account, operation: name, protect: 'transaction' }, (_request, response, { tx }) => {
        expectTypeOf(tx).toEqualTypeOf<PostgresTx>()
        response.end()
      }),
    )
    idempotent(once, { account: 'acme', operation: name }, (_request, _response, context) => {
      expectTypeOf(context).toEqualTypeOf<RequestContext>()
    })
    idempotent(once, { account, operation: name, key: 'optional' }, (_request, _response, context) => {
      expectTypeOf(context).toEqualTypeOf<RequestContext | null>()
    })
    const validate = z.object({ amount: z.number() })
    idempotent(once, { account, operation: name, validate }, (_request, _response, { input }) => {
      expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
    })
  })

  it('is there, and so is its name', () => {
    // @ts-expect-error a name alone answers nothing
    idempotent(once, { account, operation: name })
    // @ts-expect-error node:http has no routes that could name it
    idempotent(once, { account }, () => {})
  })

  it("has the application's own request", () => {
    interface Authenticated extends IncomingMessage {
      user: { account: string }
    }
    idempotent(
      once,
      { account: (request: Authenticated) => request.user.account, operation: name },
      (request) => {
        expectTypeOf(request.user.account).toEqualTypeOf<string>()
      },
    )
  })
})

describe('a route of a durable operation', () => {
  const pay = operation('payments.create', async (_op, input: { amount: number }) => reply(201, input))

  it('is given what it takes, has its own protection, and takes no handler', () => {
    createServer(idempotent(once, { account, operation: pay, input: () => ({ amount: 5 }) }))
    // @ts-expect-error an amount is a number
    idempotent(once, { account, operation: pay, input: () => ({ amount: '5' }) })
    // @ts-expect-error an operation brings its own
    idempotent(once, { account, operation: pay, protect: 'transaction' })
    // @ts-expect-error an operation answers by itself
    idempotent(once, { account, operation: pay }, () => {})
  })
})
