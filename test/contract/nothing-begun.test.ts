import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { onlyonce, operation } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { hearWarnings } from '../setup/warnings.ts'
import { openShop, SECRET } from './shop.ts'

/** Mistakes of a service that a request meets before anything was begun: its client is told so, and keeps its key. */
const NOTHING_BEGUN = { status: 500, retryable: true, executed: 'not_by_this_request' }

function request(): Request {
  const headers = { 'idempotency-key': randomUUID(), 'content-type': 'application/json' }
  return new Request('http://localhost/charges', { method: 'POST', headers, body: '{"a":1}' })
}

const handler = () => Response.json({}, { status: 201 })

test.each([
  ['an account that is empty', { account: () => '' }, 'account_invalid'],
  ['an account that is no text', { account: () => 7 as never }, 'account_invalid'],
  ['an answer of admit that is none', { admit: () => undefined as never }, 'setup_invalid'],
])('%s: nothing was begun', async (_, options, code) => {
  hearWarnings('OnlyonceMistakeWarning')
  let runs = 0
  const once = onlyonce({ store: memory(), secret: SECRET })
  const all = { account: () => 'acct_1', operation: 'charges.create', ...options }
  const route = idempotent(once, all, () => {
    runs += 1
    return handler()
  })
  expect(await (await route(request())).json()).toMatchObject({ ...NOTHING_BEGUN, code })
  expect(runs).toBe(0)
})

test('an operation that is too long is refused when the route is made', () => {
  const once = onlyonce({ store: memory(), secret: SECRET })
  const options = { account: () => 'acct_1', operation: 'o'.repeat(256) }
  const refusal = expect.objectContaining({ code: 'operation_invalid' })
  expect(() => idempotent(once, options, handler)).toThrow(refusal)
})

test('an input of an operation that cannot be stored: nothing was begun', async () => {
  hearWarnings('OnlyonceMistakeWarning')
  const once = (await openShop()).open()
  let runs = 0
  const charge = operation('charges.create', async () => {
    runs += 1
  })
  const options = { account: () => 'acct_1', operation: charge, input: () => ({ amount: 5n }) }
  const route = idempotent(once, options)
  const told = await (await route(request())).json()
  expect(told).toMatchObject({ ...NOTHING_BEGUN, code: 'input_not_serializable' })
  const call = { account: 'acct_1', key: randomUUID(), input: 'x'.repeat(2_000_000) as never }
  await expect(once.run(charge, call)).rejects.toMatchObject({ code: 'input_not_serializable' })
  expect(runs).toBe(0)
})
