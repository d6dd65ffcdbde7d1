/** What an error of the SDK says about the call: the heart of the adapter, and a table that can be tested as one. */
import Stripe from 'stripe'
import type { Decline } from '../index.ts'
import type { Exchange } from './http.ts'
import { STRIPE_LIMITS } from './limits.ts'

export type Outcome =
  | { readonly is: 'declined'; readonly decline: Decline; readonly intent: Stripe.PaymentIntent | null }
  /** It is proved that nothing happened. */
  | { readonly is: 'not_executed'; readonly why: string }
  /** It was refused for good, and must not be: a mistake of ours. */
  | { readonly is: 'refused'; readonly why: string }
  | { readonly is: 'in_doubt'; readonly why: string }

export function outcomeOf(error: unknown, exchange: Exchange): Outcome {
  const seen = exchange.requestId === null ? '' : ` (request ${exchange.requestId})`
  const inDoubt = (what: string): Outcome => ({ is: 'in_doubt', why: `${what}${seen}` })
  if (!exchange.sent) {
    const trouble = exchange.trouble ?? 'the request could not be made'
    return { is: 'not_executed', why: `Stripe was not reached: ${trouble}` }
  }
  const { status, trouble } = exchange
  if (trouble !== null)
    return inDoubt(`Stripe ${status === null ? 'gave no answer' : `answered ${status}`}: ${trouble}`)
  if (!(error instanceof Stripe.errors.StripeError) || status === null) {
    return inDoubt('An answer of Stripe could not be read')
  }
  const said = `Stripe answered ${status}${nameOf(error)}`
  const replayed = error.headers?.['idempotent-replayed'] === 'true'
  switch (status) {
    case 400:
    case 404:
      // Another call had this key, with other parameters: what that one did is not known.
      if (error.rawType === 'idempotency_error') return inDoubt(said)
      if (error.code === 'rate_limit') return { is: 'not_executed', why: `${said}${seen}` }
      if (error.rawType === 'card_error') return declinedBy(error)
      if (error.rawType !== 'invalid_request_error') return inDoubt(said)
      return refusalOf(error) ?? { is: 'refused', why: `${said}${seen}` }
    case 402:
      return error.rawType === 'card_error' ? declinedBy(error) : inDoubt(said)
    case 401:
    case 403:
    case 429:
      // None of these is kept under a key. One that was kept belongs to a call that had begun.
      return replayed ? inDoubt(`${said}, replayed`) : { is: 'not_executed', why: `${said}${seen}` }
    default:
      // 409 idempotency_key_in_use: the same call is under way. 5xx, stored ones too: it may have been done.
      return inDoubt(replayed ? `${said}, replayed` : said)
  }
}

/** The card's own no. Its message is written for the customer. */
function declinedBy(error: Stripe.errors.StripeError): Outcome {
  const intent = error.payment_intent ?? null
  const decline: Decline = {
    status: 'declined',
    gateway_id: intent?.id ?? null,
    code: safeName(error.code) ?? 'card_declined',
    decline_code: safeName(error.decline_code),
    advice: safeName(error.advice_code),
    message: safeMessage(error.message, 'The card was declined.'),
  }
  return { is: 'declined', decline, intent }
}

/**
 * Requests that are formed well and mean what we meant, but that Stripe does not want to carry out: results for the
 * caller to see. What is left is a mistake of ours, and nothing that the caller can mend.
 */
function refusalOf(error: Stripe.errors.StripeError): Outcome | null {
  const byParam = REFUSED_PARAMS.get(error.param ?? '')
  const code = safeName(error.code)
  const known = code !== null && (REFUSED_CODES.has(code) || code.startsWith('payment_method_'))
  if (byParam === undefined && !known) return null
  const [fallback, message] = byParam ?? [code!, `The processor refused it: ${code}.`]
  const intent = error.payment_intent ?? null
  const decline: Decline = {
    status: 'declined',
    gateway_id: intent?.id ?? null,
    code: known ? code : fallback,
    decline_code: null,
    advice: null,
    message,
  }
  return { is: 'declined', decline, intent }
}

/** The caller's own values among the parameters, and what a refusal of them is called. */
const REFUSED_PARAMS: ReadonlyMap<string, readonly [code: string, message: string]> = new Map([
  ['payment_method', ['payment_method_invalid', 'The processor does not take this payment method.']],
  ['amount', ['amount_invalid', 'The processor does not take this amount.']],
  ['amount_to_capture', ['amount_invalid', 'The processor does not take this amount.']],
  ['currency', ['currency_invalid', 'The processor does not take this currency.']],
  ['final_capture', ['partial_capture_unavailable', 'This payment can be captured only once.']],
])

const REFUSED_CODES: ReadonlySet<string> = new Set([
  'amount_too_large',
  'amount_too_small',
  'balance_insufficient',
  'capture_charge_authorization_expired',
  'capture_unauthorized_payment',
  'card_decline_rate_limit_exceeded',
  'charge_already_captured',
  'charge_already_refunded',
  'charge_disputed',
  'charge_expired_for_capture',
  'charge_not_refundable',
  'expired_card',
  'insufficient_funds',
  'payment_intent_authentication_failure',
  'payment_intent_unexpected_state',
  'refund_disputed_payment',
  'token_already_used',
  'token_in_use',
])

/** Type, code and parameter, which have a known form. The message is left out: it quotes what was sent. */
function nameOf(error: Stripe.errors.StripeError): string {
  const names = [safeName(error.rawType), safeName(error.code), safeName(error.param)]
  const known = names.filter((name) => name !== null)
  return known.length === 0 ? '' : ` ${known.join(' ')}`
}

export function safeName(name: unknown): string | null {
  return typeof name === 'string' && /^[\w.[\]-]{1,80}$/.test(name) ? name : null
}

/** Nothing that looks like a card number, or a key, goes further than this. */
export function safeMessage(message: unknown, otherwise: string): string {
  if (typeof message !== 'string' || message === '') return otherwise
  return (
    message
      .slice(0, STRIPE_LIMITS.messageLengthMax)
      .replace(/\d(?:[ -]?\d){11,}/g, '[number]')
      .replace(/\b(?:sk|rk|pk|whsec)_\w+/g, '[key]')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they have no place in a message.
      .replace(/[\u0000-\u001f\u007f]/g, ' ')
  )
}
