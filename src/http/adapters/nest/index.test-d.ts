import { Controller, Post } from '@nestjs/common'
import { describe, it } from 'vitest'
import { onlyonce, operation, reply } from '../../../index.ts'
import { type PostgresTx, postgres } from '../../../store/postgres/index.ts'
import { Idempotent, OnlyonceModule, Tx } from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const pay = operation('payments.create', async (_op, input: { amount: number }) => reply(201, input))

describe('decorators of NestJS', () => {
  it('stand before handlers of every kind, and before controllers', () => {
    @Controller()
    @Idempotent({ leaseMs: 1_000 })
    class Things {
      @Post()
      @Idempotent({ protect: 'transaction' })
      async create(@Tx() tx: PostgresTx): Promise<number> {
        return (await tx.query('SELECT 1')).rows.length
      }

      @Post('named')
      @Idempotent({ operation: 'things.create' })
      named(body: unknown) {
        return body
      }
    }
    return Things
  })

  it('take an empty method for a durable operation, and no other', () => {
    @Controller()
    class Payments {
      @Post()
      @Idempotent({ operation: pay, input: () => ({ amount: 5 }) })
      create(): void {}

      // @ts-expect-error it would not be given anything
      @Idempotent({ operation: pay })
      parameters(_body: unknown): void {}

      // @ts-expect-error no code would read its result
      @Idempotent({ operation: pay })
      async result(): Promise<number> {
        return 1
      }

      // @ts-expect-error an amount is a number
      @Idempotent({ operation: pay, input: () => ({ amount: '5' }) })
      input(): void {}

      // @ts-expect-error an operation brings its own
      @Idempotent({ operation: pay, protect: 'transaction' })
      protection(): void {}
    }
    return Payments
  })

  it('are told the account by a function, or are of the only one', () => {
    OnlyonceModule.forRoot({
      once,
      account: (request: { user: { account: string } }) => request.user.account,
    })
    OnlyonceModule.forRoot({ once, account: 'acme' })
    // @ts-expect-error whose request is it?
    OnlyonceModule.forRoot({ once })
  })
})
