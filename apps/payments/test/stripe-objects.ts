/** Stripe's objects as its API tells them, cut down to what the adapter reads. */
import type { AuthorizeOrder, CaptureOrder, RefundOrder } from '../gateway/index.ts'

export const KEY = 'GGoDxo6kbjdkhwOO3wkAu9EYGjnG0dztgY2sqpdAHF0'
export const OTHER_KEY = '9meU4tFsE9rBAvy4M940nRsi9ZXNosyR74cozq-3LLg'
export const ENTRY = `capture_${KEY.slice(0, 30)}`

export const ORDER: AuthorizeOrder = {
  account: 'acct_1:test',
  payment: 'pay_1',
  amount: 1_000,
  currency: 'EUR',
  payment_method: 'pm_card_visa',
  capture: 'automatic',
  reference: 'order 7',
}
export const HELD: AuthorizeOrder = { ...ORDER, capture: 'manual' }
export const CAPTURE: CaptureOrder = {
  gateway_id: 'pi_1',
  capture: 'cap_1',
  amount: 400,
  currency: 'EUR',
  final: false,
}
export const REFUND: RefundOrder = {
  account: 'acct_1:test',
  gateway_id: 'pi_1',
  refund: 'ref_1',
  amount: 300,
  currency: 'EUR',
  reason: null,
}

export type Changes = Readonly<Record<string, unknown>>

/** Taken at once. */
export function intent(changes: Changes = {}) {
  return {
    id: 'pi_1',
    object: 'payment_intent',
    livemode: false,
    amount: 1_000,
    amount_received: 1_000,
    amount_capturable: 0,
    currency: 'eur',
    capture_method: 'automatic',
    status: 'succeeded',
    created: 1_700_000_000,
    last_payment_error: null,
    latest_charge: 'ch_1',
    metadata: { onlyonce_key: KEY, account: 'acct_1:test', payment: 'pay_1', reference: 'order 7' },
    ...changes,
  }
}

/** Only held. */
export function held(changes: Changes = {}) {
  return intent({
    capture_method: 'manual',
    status: 'requires_capture',
    amount_received: 0,
    amount_capturable: 1_000,
    ...changes,
  })
}

/** Held, and taken in part by the call of KEY. */
export function partly(changes: Changes = {}) {
  return held({
    amount_received: 400,
    amount_capturable: 600,
    metadata: {
      onlyonce_key: OTHER_KEY,
      account: 'acct_1:test',
      payment: 'pay_1',
      [ENTRY]: `400 cap_1 ${KEY}`,
    },
    ...changes,
  })
}

export function refund(changes: Changes = {}) {
  return {
    id: 're_1',
    object: 'refund',
    amount: 300,
    currency: 'eur',
    payment_intent: 'pi_1',
    status: 'succeeded',
    created: 1_700_000_000,
    metadata: { onlyonce_key: KEY, account: 'acct_1:test', refund: 'ref_1' },
    ...changes,
  }
}

export function cardError(changes: Changes = {}) {
  return {
    error: {
      type: 'card_error',
      code: 'card_declined',
      decline_code: 'insufficient_funds',
      advice_code: 'try_again_later',
      message: 'Your card has insufficient funds.',
      payment_intent: intent({ status: 'requires_payment_method', amount_received: 0 }),
      ...changes,
    },
  }
}

export const apiError = (changes: Changes) => ({
  error: { type: 'invalid_request_error', message: 'No.', ...changes },
})

export const page = (data: readonly unknown[], hasMore = false) => ({
  object: 'list',
  data,
  has_more: hasMore,
})
