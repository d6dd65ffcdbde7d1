import { expectTypeOf, test } from 'vitest'
import { type Onlyonce, type Operation, operation, reply } from '../index.ts'
import type { PostgresTx } from '../store/postgres/index.ts'

declare const once: Onlyonce<PostgresTx>

const pay = operation('payments.create', async (op, input: { amount: number }) => {
  const payment = await op.transaction('created', async () => ({ id: 'pay_1', at: new Date(0) }))
  expectTypeOf(payment).toEqualTypeOf<{ id: string; at: string }>()
  const charge = await op.call('charged', {
    call: async ({ key, signal }) => {
      expectTypeOf(key).toBeString()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      return { id: 'ch_1', amount: input.amount }
    },
    find: async () => ({ status: 'found', result: { id: 'ch_1', amount: 1 } }),
  })
  expectTypeOf(charge).toEqualTypeOf<{ id: string; amount: number }>()
  if (charge.amount === 0) return reply(402, { declined: true as const })
  return op.transaction('settled', async () => reply(201, { id: payment.id, charge: charge.id }))
})

test('types flow from the results of steps to the result of the operation', async () => {
  type Value = { declined: true } | { id: string; charge: string }
  expectTypeOf(pay).toEqualTypeOf<Operation<{ amount: number }, Value>>()
  const result = await once.run(pay, { account: 'acct_1', key: 'a-key-of-a-client', input: { amount: 5 } })
  if (result.outcome === 'executed' || result.outcome === 'replayed') {
    expectTypeOf(result.value).toEqualTypeOf<Value>()
    expectTypeOf(result.status).toBeNumber()
  } else expectTypeOf(result.outcome).toEqualTypeOf<'in_progress' | 'key_reused' | 'unknown' | 'parked'>()
})

test('what does not fit is refused', () => {
  // @ts-expect-error the input of the operation has an amount
  void once.run(pay, { account: 'acct_1', key: 'a-key-of-a-client', input: { sum: 5 } })
  operation('payments.wrong', async (op, _: unknown) => {
    // @ts-expect-error find has to answer for what call gives
    await op.call('a', { call: async () => 1, find: async () => ({ status: 'found', result: 'one' }) })
    // @ts-expect-error there is no such answer
    await op.call('b', { call: async () => 1, find: async () => ({ status: 'maybe' }) })
  })
})
