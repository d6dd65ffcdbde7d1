import { expect, it } from 'vitest'
import { failureOf, HELD_TEA, newKey, openGateway, TEA } from './under-test.ts'

const { gateway, stripe } = await openGateway()

const CASES: [string, string, string | undefined, string][] = [
  ['pm_card_chargeDeclined', 'card_declined', 'generic_decline', 'try_again_later'],
  ['pm_card_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds', 'try_again_later'],
  ['pm_card_chargeDeclinedLostCard', 'card_declined', 'lost_card', 'do_not_try_again'],
  ['pm_card_chargeDeclinedStolenCard', 'card_declined', 'stolen_card', 'do_not_try_again'],
  ['pm_card_chargeDeclinedExpiredCard', 'expired_card', undefined, 'do_not_try_again'],
  ['pm_card_chargeDeclinedIncorrectCvc', 'incorrect_cvc', undefined, 'confirm_card_data'],
  ['pm_card_chargeDeclinedProcessingError', 'processing_error', undefined, 'try_again_later'],
  ['pm_card_authenticationRequired', 'authentication_required', 'authentication_required', 'try_again_later'],
]

it.each(CASES)('%s is declined as %s %s', async (paymentMethod, code, declineCode, adviceCode) => {
  const key = newKey()
  const pay = () =>
    stripe.paymentIntents.create({ ...TEA, payment_method: paymentMethod }, { idempotencyKey: key })
  const failure = await failureOf(pay())
  expect(failure).toMatchObject({ type: 'StripeCardError', statusCode: 402, code, advice_code: adviceCode })
  expect(failure.raw).toMatchObject({ type: 'card_error', code, message: failure.message })
  expect((failure.raw as { decline_code?: string }).decline_code).toBe(declineCode)
  const intent = failure.payment_intent!
  expect(intent).toMatchObject({
    status: 'requires_payment_method',
    amount_received: 0,
    last_payment_error: { type: 'card_error', code, advice_code: adviceCode },
  })
  expect(await stripe.paymentIntents.retrieve(intent.id)).toEqual(intent)
  // A decline is an answer like any other: the same again, and one line in the journal.
  const again = await failureOf(pay())
  expect(again.payment_intent).toEqual(intent)
  expect(again.headers?.['idempotent-replayed']).toBe('true')
  const entries = (await gateway.journal()).filter((entry) => entry.key === key)
  expect(entries).toMatchObject([
    { kind: 'decline', amount: 4200, payment_intent: intent.id, payment_method: paymentMethod },
  ])
})

it('declines what should be held too, and lets what was declined be canceled', async () => {
  const paymentMethod = 'pm_card_chargeDeclined'
  const { payment_intent: paymentIntent } = await failureOf(
    stripe.paymentIntents.create({ ...HELD_TEA, payment_method: paymentMethod }),
  )
  const { id } = paymentIntent!
  expect(await failureOf(stripe.paymentIntents.capture(id))).toMatchObject({
    code: 'payment_intent_unexpected_state',
  })
  expect(await stripe.paymentIntents.cancel(id)).toMatchObject({ status: 'canceled' })
})
