/** What a webhook proves about a call of ours. */
import type Stripe from 'stripe'
import type { Authorized, Captured, Decline, Refunded, Voided } from '../index.ts'
import { ACCOUNT_ENTRY, capturesOf, KEY_ENTRY } from './metadata.ts'
import { authorizationIn, type Intent, refundIn } from './results.ts'

export interface Evidence {
  /** Of the call, as it was given to it. */
  readonly key: string
  /** What the call would have returned. */
  readonly result: Authorized | Decline | Captured | Voided | Refunded
}

/**
 * What an event proves, to be told to the library by `addEvidence`. Check its signature first. Mostly one thing; nothing
 * where it proves nothing; and several where it shows several captures, each of which may be the one in doubt.
 *
 * Events of charges prove nothing here: a capture writes into the payment intent only, and whatever happens to one makes
 * an event of the intent as well.
 *
 * @example
 * for (const { key, result } of evidenceOf(event)) await addEvidence(once, { account, key, result })
 */
export function evidenceOf(event: Stripe.Event): readonly Evidence[] {
  try {
    return proved(event)
  } catch {
    // An object that contradicts itself is no proof of anything.
    return []
  }
}

/** Whose call an event is about; null for what we have not made. */
export function accountIn(event: Stripe.Event): string | null {
  const { metadata } = event.data.object as { metadata?: Record<string, string> | null }
  return metadata?.[ACCOUNT_ENTRY] ?? null
}

function proved(event: Stripe.Event): readonly Evidence[] {
  switch (event.type) {
    case 'payment_intent.amount_capturable_updated':
    case 'payment_intent.succeeded':
    case 'payment_intent.payment_failed':
    case 'payment_intent.requires_action':
      return [...authorizations(event.data.object), ...captures(event.data.object)]
    case 'payment_intent.canceled':
      return [...captures(event.data.object), ...voids(event, event.data.object)]
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
      return refunds(event.data.object)
    default:
      return []
  }
}

function authorizations(intent: Intent): Evidence[] {
  const key = intent.metadata?.[KEY_ENTRY]
  if (!key || !isFirst(intent)) return []
  const result = authorizationIn(intent)
  return result === null ? [] : [{ key, result }]
}

/** Whether it is still as the authorization left it. What came afterwards says how that went, but not what it returned. */
function isFirst(intent: Intent): boolean {
  if (capturesOf(intent.metadata).size > 0) return false
  return intent.capture_method !== 'manual' || intent.amount_received === 0
}

/** An entry of the metadata is written by the capture itself, so it proves it in whatever event it stands. */
function captures(intent: Intent): Evidence[] {
  const entries = [...capturesOf(intent.metadata).values()]
  const all = entries.reduce((sum, { amount }) => sum + amount, 0)
  if (!intent.metadata?.[KEY_ENTRY] || intent.amount_received !== all) return []
  const currency = intent.currency.toUpperCase()
  return entries.map(({ key, amount }) => ({
    key,
    result: { status: 'captured', gateway_id: intent.id, amount, currency },
  }))
}

/** A cancellation leaves nothing of ours in the intent. Which call it was, the event tells by its request's key. */
function voids(event: Stripe.Event, intent: Intent): Evidence[] {
  const key = event.request?.idempotency_key
  if (!key || !intent.metadata?.[KEY_ENTRY] || intent.status !== 'canceled') return []
  // A payment that was canceled while it was tried: its request is that of the authorization.
  if (key === intent.metadata[KEY_ENTRY]) return []
  return [{ key, result: { status: 'voided', gateway_id: intent.id } }]
}

function refunds(refund: Stripe.Refund): Evidence[] {
  const key = refund.metadata?.[KEY_ENTRY]
  const result = key ? refundIn(refund) : null
  return key && result !== null ? [{ key, result }] : []
}
