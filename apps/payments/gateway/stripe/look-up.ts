/** What Stripe has under an id that a person names, or under the key of a call of ours. */
import Stripe from 'stripe'
import type { Charge, Gateway, Mode } from '../index.ts'
import { outcomeOf } from './classify.ts'
import type { Sender } from './http.ts'
import { capturesOf, KEY_ENTRY } from './metadata.ts'
import { intentsOfKey, type Read, refundsOf } from './pages.ts'
import { captureBefore, type Intent, idOf, moneyOf } from './results.ts'

/** The documentation of Stripe shows no other characters; nothing else may become a part of a path. */
export const STRIPE_IDS = { payment: /^pi_[A-Za-z0-9]{1,250}$/, refund: /^re_[A-Za-z0-9]{1,250}$/ } as const

export function lookUpAt(sender: Sender, mode: Mode): Gateway['lookUp'] {
  return async (kind, gatewayId, signal) => {
    if (kind === 'refund') {
      const refund = await ask(sender, signal, (stripe) => stripe.refunds.retrieve(gatewayId))
      return refund?.id === gatewayId ? chargeOfRefund(refund) : null
    }
    const expanded = { expand: ['latest_charge'] }
    const intent = await ask(sender, signal, (stripe) => stripe.paymentIntents.retrieve(gatewayId, expanded))
    // One of the other mode is none of this account's.
    if (intent?.id !== gatewayId || intent.livemode !== (mode === 'live')) return null
    return chargeOfIntent(intent)
  }
}

export function lookUpByKeyAt(
  read: Read,
  retrieve: (id: string, signal: AbortSignal) => Promise<Intent>,
): Gateway['lookUpByKey'] {
  return async (kind, { key, of }, signal) => {
    const found: Charge[] = []
    if (kind === 'payment') {
      for (const id of await intentsOfKey(read, key, signal))
        found.push(chargeOfIntent(await retrieve(id, signal)))
      return found
    }
    if (of === null) return found
    for await (const refund of refundsOf(read, of, signal))
      if (refund.metadata?.[KEY_ENTRY] === key) found.push(chargeOfRefund(refund))
    return found
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
  // What was canceled after a part was taken has moved that part.
  const ended = intent.status === 'canceled' && intent.amount_received > 0
  const status = ended ? 'moved' : (INTENTS[intent.status] ?? 'open')
  return {
    ...moneyOf(intent),
    gateway_id: intent.id,
    key: intent.metadata?.[KEY_ENTRY] ?? null,
    taken: intent.amount_received,
    held: intent.amount_capturable,
    given_back: givenBack(intent),
    captures: [...capturesOf(intent.metadata).values()].map(({ key, amount }) => ({ key, amount })),
    account: intent.metadata?.account ?? null,
    reference: intent.metadata?.payment ?? null,
    of: null,
    status,
    capture_before: status === 'held' ? captureBefore(intent) : null,
  }
}

/** The charge of an intent tells it, and only where it is told whole. */
function givenBack({ id, amount_received: amountReceived, latest_charge: latestCharge }: Intent): number {
  if (amountReceived === 0) return 0
  if (latestCharge !== null && typeof latestCharge === 'object') return latestCharge.amount_refunded
  throw new Error(`Stripe does not tell what was given back of ${id}.`)
}

function chargeOfRefund(refund: Stripe.Refund): Charge {
  const status = REFUNDS[refund.status ?? ''] ?? 'open'
  return {
    ...moneyOf(refund),
    gateway_id: refund.id,
    key: refund.metadata?.[KEY_ENTRY] ?? null,
    taken: status === 'moved' ? refund.amount : 0,
    held: 0,
    given_back: 0,
    captures: [],
    account: refund.metadata?.account ?? null,
    reference: refund.metadata?.refund ?? null,
    of: idOf(refund.payment_intent),
    status,
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
