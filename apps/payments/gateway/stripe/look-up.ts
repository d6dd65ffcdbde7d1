/** What Stripe has under an id that a person names. */
import Stripe from 'stripe'
import type { Charge, Gateway, Mode } from '../index.ts'
import { outcomeOf } from './classify.ts'
import type { Sender } from './http.ts'
import { captureBefore, type Intent, idOf, moneyOf } from './results.ts'

/** The documentation of Stripe shows no other characters; nothing else may become a part of a path. */
export const STRIPE_IDS = { payment: /^pi_[A-Za-z0-9]{1,250}$/, refund: /^re_[A-Za-z0-9]{1,250}$/ } as const

export function lookUpAt(sender: Sender, mode: Mode): Gateway['lookUp'] {
  return async (kind, gateway_id, signal) => {
    if (kind === 'refund') {
      const refund = await ask(sender, signal, (stripe) => stripe.refunds.retrieve(gateway_id))
      return refund?.id === gateway_id ? chargeOfRefund(refund) : null
    }
    const expanded = { expand: ['latest_charge'] }
    const intent = await ask(sender, signal, (stripe) => stripe.paymentIntents.retrieve(gateway_id, expanded))
    // One of the other mode is none of this account's.
    if (intent?.id !== gateway_id || intent.livemode !== (mode === 'live')) return null
    return chargeOfIntent(intent)
  }
}

/** Null where Stripe itself says that there is no such object. */
async function ask<T>(
  sender: Sender,
  signal: AbortSignal,
  work: (stripe: Stripe) => Promise<T>,
): Promise<T | null> {
  const ended = await sender.send(signal, work)
  if (ended.ok) return ended.answer
  const { error, exchange } = ended
  const missing = error instanceof Stripe.errors.StripeError && error.code === 'resource_missing'
  if (missing && exchange.status === 404 && exchange.trouble === null) return null
  const outcome = outcomeOf(error, exchange)
  throw new Error(outcome.is === 'declined' ? outcome.decline.message : outcome.why)
}

function chargeOfIntent(intent: Intent): Charge {
  const status = INTENTS[intent.status] ?? 'open'
  return {
    ...moneyOf(intent),
    account: intent.metadata?.account ?? null,
    reference: intent.metadata?.payment ?? null,
    of: null,
    status,
    capture_before: status === 'held' ? captureBefore(intent) : null,
  }
}

function chargeOfRefund(refund: Stripe.Refund): Charge {
  return {
    ...moneyOf(refund),
    account: refund.metadata?.account ?? null,
    reference: refund.metadata?.refund ?? null,
    of: idOf(refund.payment_intent),
    status: REFUNDS[refund.status ?? ''] ?? 'open',
    capture_before: null,
  }
}

const INTENTS: Readonly<Record<string, Charge['status']>> = {
  succeeded: 'moved',
  requires_capture: 'held',
  requires_payment_method: 'failed',
  requires_action: 'failed',
  canceled: 'failed',
}

const REFUNDS: Readonly<Record<string, Charge['status']>> = {
  succeeded: 'moved',
  failed: 'failed',
  canceled: 'failed',
}
