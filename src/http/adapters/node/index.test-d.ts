import { describe, it } from 'vitest'
import { onlyonce, operation, reply } from '../../../index.ts'
import { postgres } from '../../../store/postgres/index.ts'
import { idempotent } from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const account = () => 'acct_1'

describe('a route of a durable operation', () => {
  it('is given what it takes, and has its own protection', () => {
    const pay = operation('payments.create', async (_op, input: { amount: number }) => reply(201, input))
    idempotent(once, { account, operation: pay, input: () => ({ amount: 5 }) }, () => {})
    // @ts-expect-error an amount is a number
    idempotent(once, { account, operation: pay, input: () => ({ amount: '5' }) }, () => {})
    // @ts-expect-error an operation brings its own
    idempotent(once, { account, operation: pay, protect: 'transaction' }, () => {})
  })
})
