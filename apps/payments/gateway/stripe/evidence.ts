/** What a webhook proves about a call of ours. */
import type Stripe from 'stripe'
import type { Authorized, Captured, Decline, Refunded, Voided } from '../index.ts'
import { capturesOf, KEY_ENTRY } from './metadata.ts'
import { authorizationIn, type Intent, refundIn } from './results.ts'

/** As the library's `addEvidence` takes it. */
export interface Evidence {
  /** Whose call it was. */
  readonly account: string
  /** Of the call, as it was given to it. */
  readonly key: string
  /** What the call would have returned. */
  readonly result: Authorized | Decline | Captured | Voided | Refunded
}

type Proof = Omit<Evidence, 'account'>

/**
 * What an event proves. Check its signature first. Mostly one thing; nothing where it proves nothing; and several where it
 * shows several captures, each of which may be the one in doubt.
 *
 * Events of charges prove nothing here: a capture writes into the payment intent only, and whatever happens to one makes
 * an event of the intent as well.
 *
 * @example
 * for (const proof of evidenceOf(event)) await addEvidence(once, proof)
 */
export function evidenceOf(event: Stripe.Event): readonly Evidence[] {
  // Signed does not mean known: some kinds of events have no object, or none with metadata.
  const object = event.data?.object as { readonly metadata?: Stripe.Metadata | null } | null | undefined
  const metadata = object?.metadata
  const account = metadata?.account
  // Whoever may write test objects could name a live account in them.
  if (!metadata?.[KEY_ENTRY] || !account?.endsWith(event.livemode ? ':live' : ':test')) return []
  try {
    return proofsOf(event, metadata[KEY_ENTRY]).map((proof) => ({ account, ...proof }))
  } catch {
    // An object that contradicts itself is no proof of anything.
    return []
  }
}

function proofsOf(event: Stripe.Event, key: string): readonly Proof[] {
  switch (event.type) {
    case 'payment_intent.amount_capturable_updated':
    case 'payment_intent.succeeded':
    case 'payment_intent.payment_failed':
      return [...authorizations(event.data.object, key), ...captures(event.data.object)]
    case 'payment_intent.canceled':
      return [...captures(event.data.object), ...voids(event, event.data.object, key)]
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
      return proofOf(key, refundIn(event.data.object))
    default:
      return []
  }
}

function authorizations(intent: Intent, key: string): readonly Proof[] {
  return isFirst(intent) ? proofOf(key, authorizationIn(intent)) : []
}

/** Whether it is still as the authorization left it. What came afterwards says how that went, but not what it returned. */
function isFirst(intent: Intent): boolean {
  if (capturesOf(intent.metadata).size > 0) return false
  return intent.capture_method !== 'manual' || intent.amount_received === 0
}

/** An entry of the metadata is written by the capture itself, so it proves it in whatever event it stands. */
function captures(intent: Intent): readonly Proof[] {
  const entries = [...capturesOf(intent.metadata).values()]
  const all = entries.reduce((sum, { amount }) => sum + amount, 0)
  if (intent.amount_received !== all) return []
  const currency = intent.currency.toUpperCase()
  return entries.map(({ key, amount }) => ({
    key,
    result: { status: 'captured', gateway_id: intent.id, amount, currency },
  }))
}

/** A cancellation leaves nothing of ours in the intent. Which call it was, the event tells by its request's key. */
function voids(event: Stripe.Event, intent: Intent, authorizedBy: string): readonly Proof[] {
  const key = event.request?.idempotency_key
  // A payment that was canceled while it was tried: its request is that of the authorization.
  if (!key || key === authorizedBy || intent.status !== 'canceled') return []
  return [{ key, result: { status: 'voided', gateway_id: intent.id } }]
}

/** Nothing where it is not decided. */
function proofOf(key: string, result: Proof['result'] | null): readonly Proof[] {
  return result === null ? [] : [{ key, result }]
}
