import { describe, expectTypeOf, it } from 'vitest'
import { useIdempotentAction } from '../react/index.ts'
import { type CallFailure, idempotentFetch, type KeyStatus, NotExecuted, OutcomeUnknown } from './index.ts'
import { pendingAction } from './keys/index.ts'

describe('the client', () => {
  it('is a fetch, and takes what fetch takes', () => {
    expectTypeOf(idempotentFetch()).toExtend<typeof fetch>()
    expectTypeOf(idempotentFetch().send).returns.resolves.toHaveProperty('attempts')
    // @ts-expect-error there is no such option
    idempotentFetch({ maxRetry: 1 })
  })

  it('tells its failures apart', () => {
    const failure = {} as CallFailure
    if (failure.name === 'OutcomeUnknown') expectTypeOf(failure.status()).resolves.toEqualTypeOf<KeyStatus>()
    const thrown: unknown = failure
    if (thrown instanceof OutcomeUnknown) expectTypeOf(thrown).toEqualTypeOf<OutcomeUnknown>()
    if (thrown instanceof NotExecuted) expectTypeOf(thrown.retryAfterMs).toEqualTypeOf<number | null>()
  })

  it('wants to know the user of an action, and gives back what its function gives', () => {
    // @ts-expect-error a user, or null
    pendingAction('checkout', {})
    const action = pendingAction('checkout', { user: null })
    expectTypeOf(action.run(1, async () => 'paid')).resolves.toEqualTypeOf<string>()
  })

  it('infers payload and result in React', () => {
    const pay = () =>
      useIdempotentAction('checkout', async (order: { amount: number }) => order.amount, { user: null })
    expectTypeOf(pay).returns.toHaveProperty('run').parameter(0).toEqualTypeOf<{ amount: number }>()
    const shown = {} as ReturnType<typeof pay>
    if (shown.state === 'done') expectTypeOf(shown.result).toEqualTypeOf<number>()
    else expectTypeOf(shown.result).toEqualTypeOf<undefined>()
  })
})
