/**
 * Stripe's objects as results of ours. Each is compared with what was asked: what differs is thrown, and so in doubt, for
 * neither side can say what happened then. `pending` is what has not been decided.
 */

import type { Found } from 'onlyonce'
import type Stripe from 'stripe'
import type {
  Authorized,
  AuthorizeOrder,
  Captured,
  CaptureOrder,
  Decline,
  Mode,
  Money,
  Refunded,
  RefundOrder,
  Voided,
} from '../index.ts'
import { safeMessage, safeName } from './classify.ts'
import { STRIPE_LIMITS } from './limits.ts'
import { captureEntry, capturesOf, KEY_ENTRY } from './metadata.ts'

export type Intent = Stripe.PaymentIntent

export function authorizationOf(
  intent: Intent,
  order: AuthorizeOrder,
  key: string,
  mode: Mode,
): Found<Authorized | Decline> {
  check(intent.id, [
    ['object', intent.object, 'payment_intent'],
    ['livemode', intent.livemode, mode === 'live'],
    ['amount', intent.amount, order.amount],
    ['currency', intent.currency, order.currency.toLowerCase()],
    ['key', intent.metadata?.[KEY_ENTRY], key],
    ['account', intent.metadata?.account, order.account],
    ['payment', intent.metadata?.payment, order.payment],
    ['capture_method', intent.capture_method === 'manual', order.capture === 'manual'],
  ])
  const result = authorizationIn(intent)
  return result === null ? { status: 'pending' } : { status: 'found', result }
}

/** What became of the authorization, whoever asked for it; null where that is not decided. */
export function authorizationIn(intent: Intent): Authorized | Decline | null {
  switch (intent.status) {
    case 'succeeded':
      // What was only to be held has been taken since: not by this call, so this is not what it did.
      check(intent.id, [
        ['capture_method', intent.capture_method === 'manual', false],
        ['received', intent.amount_received, intent.amount],
      ])
      return authorized(intent, 'captured')
    case 'requires_capture':
      if (intent.capture_method !== 'manual') return null
      check(intent.id, [['capturable', intent.amount_capturable, intent.amount]])
      return authorized(intent, 'authorized')
    case 'requires_action':
      // The customer is not at hand, and is given no way to act: to the payment this is a no.
      return declined(intent, 'authentication_required', 'The card asks for an authentication of its holder.')
    case 'requires_payment_method':
    case 'requires_confirmation':
      // Without an error it was made, and is about to be tried.
      return intent.last_payment_error ? declined(intent, 'card_declined', 'The card was declined.') : null
    case 'canceled':
      return declined(intent, 'payment_canceled', 'The payment was canceled.')
    case 'processing':
      return null
    default:
      throw new Error(`The payment intent ${intent.id} has a status that is not known.`)
  }
}

function authorized(intent: Intent, status: 'authorized' | 'captured'): Authorized {
  return {
    status,
    gateway_id: intent.id,
    ...moneyOf(intent),
    capture_before: status === 'authorized' ? captureBefore(intent) : null,
  }
}

export function captureBefore({ latest_charge: latestCharge, created }: Intent): string {
  const card = typeof latestCharge === 'object' ? latestCharge?.payment_method_details?.card : undefined
  const atMs = card?.capture_before ? card.capture_before * 1_000 : created * 1_000 + STRIPE_LIMITS.holdMs
  return new Date(atMs).toISOString()
}

function declined(intent: Intent, code: string, message: string): Decline {
  const error = intent.last_payment_error
  return {
    status: 'declined',
    gateway_id: intent.id,
    code: safeName(error?.code) ?? code,
    decline_code: safeName(error?.decline_code),
    advice: safeName(error?.advice_code),
    message: safeMessage(error?.message, message),
  }
}

/** Null where this capture has not been made. */
export function captureOf(intent: Intent, order: CaptureOrder, key: string, mode: Mode): Captured | null {
  check(intent.id, [
    ['object', intent.object, 'payment_intent'],
    ['id', intent.id, order.gateway_id],
    ['livemode', intent.livemode, mode === 'live'],
    ['currency', intent.currency, order.currency.toLowerCase()],
  ])
  const captures = capturesOf(intent.metadata)
  const entry = captures.get(captureEntry(key))
  if (entry === undefined) return null
  const all = [...captures.values()].reduce((sum, { amount }) => sum + amount, 0)
  check(intent.id, [
    ['key', entry.key, key],
    ['capture', entry.capture, order.capture],
    ['amount', entry.amount, order.amount],
    // Each capture leaves its amount: together they are what was taken, or somebody took something else.
    ['received', intent.amount_received, all],
  ])
  return { status: 'captured', gateway_id: intent.id, amount: order.amount, currency: order.currency }
}

export function voidOf(intent: Intent, gatewayId: string, mode: Mode): Found<Voided> {
  check(intent.id, [
    ['object', intent.object, 'payment_intent'],
    ['id', intent.id, gatewayId],
    ['livemode', intent.livemode, mode === 'live'],
  ])
  if (intent.status === 'canceled' || isLetGo(intent)) {
    return { status: 'found', result: { status: 'voided', gateway_id: gatewayId } }
  }
  return { status: intent.status === 'processing' ? 'pending' : 'not_found' }
}

/** Taken in part, all of it by captures of ours, and the rest is held no more: an intent whose time is over ends so, too. */
function isLetGo({
  status,
  metadata,
  amount_received: amountReceived,
  amount_capturable: amountCapturable,
}: Intent): boolean {
  const taken = [...capturesOf(metadata).values()].reduce((sum, { amount }) => sum + amount, 0)
  return status === 'succeeded' && amountCapturable === 0 && taken > 0 && amountReceived === taken
}

/** What a cancellation answers. Where some was taken before, an intent may end as succeeded: the rest is let go all the same. */
export function voidAnswer(intent: Intent, gatewayId: string, mode: Mode): Voided | null {
  const found = voidOf(intent, gatewayId, mode)
  if (found.status === 'found') return found.result
  const letGo = intent.status === 'succeeded' && intent.amount_capturable === 0
  return letGo ? { status: 'voided', gateway_id: gatewayId } : null
}

export function refundOf(refund: Stripe.Refund, order: RefundOrder, key: string): Found<Refunded | Decline> {
  check(refund.id, [
    ['object', refund.object, 'refund'],
    ['payment_intent', idOf(refund.payment_intent), order.gateway_id],
    ['amount', refund.amount, order.amount],
    ['currency', refund.currency, order.currency.toLowerCase()],
    ['key', refund.metadata?.[KEY_ENTRY], key],
    ['account', refund.metadata?.account, order.account],
    ['refund', refund.metadata?.refund, order.refund],
  ])
  const result = refundIn(refund)
  return result === null ? { status: 'pending' } : { status: 'found', result }
}

export function refundIn(refund: Stripe.Refund): Refunded | Decline | null {
  switch (refund.status) {
    case 'succeeded':
      return { status: 'refunded', gateway_id: refund.id, ...moneyOf(refund) }
    case 'failed':
    case 'canceled':
      return {
        status: 'declined',
        gateway_id: refund.id,
        code: `refund_${refund.status}`,
        decline_code: safeName(refund.failure_reason),
        advice: null,
        message: 'The processor could not give the money back.',
      }
    default:
      return null
  }
}

export function idOf(object: string | { readonly id: string } | null): string | null {
  return typeof object === 'string' ? object : (object?.id ?? null)
}

export function moneyOf({ amount, currency }: Money): Money {
  return { amount, currency: currency.toUpperCase() }
}

function check(id: unknown, rows: readonly (readonly [what: string, is: unknown, asked: unknown])[]): void {
  const wrong = rows.filter(([, is, asked]) => is !== asked).map(([what]) => what)
  if (wrong.length === 0) return
  throw new Error(
    `What Stripe tells of ${safeName(id) ?? 'an object'} is not what was asked: ${wrong.join(', ')}.`,
  )
}
