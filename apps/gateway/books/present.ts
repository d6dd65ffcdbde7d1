import { CARDS } from './cards.ts'
import { AUTHORIZATION_MS, type Effect, type Intent, type Refund } from './index.ts'

/** Things as Stripe shows them. The same moment of a thing is always the same text: that is what replays rely on. */
export function presentIntent(intent: Intent, expanded: boolean) {
  return {
    id: intent.id,
    object: 'payment_intent' as const,
    amount: intent.amount,
    amount_capturable: intent.capturable,
    amount_received: intent.received,
    canceled_at: intent.canceledAt === null ? null : seconds(intent.canceledAt),
    cancellation_reason: intent.cancellationReason,
    capture_method: intent.captureMethod,
    client_secret: `${intent.id}_secret_sandbox`,
    confirmation_method: 'automatic',
    created: seconds(intent.created),
    currency: intent.currency,
    customer: null,
    description: intent.description,
    last_payment_error: intent.decline === null ? null : presentDecline(intent),
    latest_charge: expanded ? presentCharge(intent) : intent.charge,
    livemode: false,
    metadata: intent.metadata,
    next_action: null,
    // Stripe takes the method away from an intent that it has declined.
    payment_method: intent.decline === null ? intent.paymentMethod : null,
    payment_method_types: ['card'],
    processing: null,
    status: intent.status,
  }
}

export function presentCharge(intent: Intent) {
  const { decline, amount, received, refunded } = intent
  const card = CARDS.get(intent.paymentMethod)
  const isManual = intent.captureMethod === 'manual' && decline === null
  return {
    id: intent.charge,
    object: 'charge' as const,
    amount,
    amount_captured: received,
    amount_refunded: refunded,
    captured: received > 0 && intent.capturable === 0,
    created: seconds(intent.created),
    currency: intent.currency,
    description: intent.description,
    failure_code: decline?.code ?? null,
    failure_message: decline?.message ?? null,
    livemode: false,
    metadata: intent.metadata,
    paid: decline === null,
    payment_intent: intent.id,
    payment_method: intent.paymentMethod,
    payment_method_details: {
      type: 'card',
      card: {
        brand: card?.brand ?? 'unknown',
        last4: card?.last4 ?? '0000',
        ...(isManual && {
          capture_before: seconds(intent.created + AUTHORIZATION_MS),
          multicapture: { status: 'available' },
        }),
      },
    },
    refunded: refunded > 0 && refunded === received,
    status: decline === null ? 'succeeded' : 'failed',
  }
}

export function presentRefund({ id, amount, created, intent, metadata, reason }: Refund) {
  return {
    id,
    object: 'refund' as const,
    amount,
    charge: intent.charge,
    created: seconds(created),
    currency: intent.currency,
    metadata,
    payment_intent: intent.id,
    reason,
    status: 'succeeded' as const,
  }
}

/** What an error of a card tells; the error itself also names the intent. */
function presentDecline({ decline, charge, paymentMethod }: Intent) {
  const { code, declineCode, adviceCode, message } = decline!
  return {
    advice_code: adviceCode,
    charge,
    code,
    ...(declineCode !== null && { decline_code: declineCode }),
    doc_url: `https://docs.stripe.com/error-codes/${code.replaceAll('_', '-')}`,
    message,
    payment_method: { id: paymentMethod, object: 'payment_method', type: 'card' },
    type: 'card_error' as const,
  }
}

/** The answer to what was carried out: the same whenever it is given. */
export function answerTo({ entry, intent, refund }: Effect): { status: number; body: object } {
  if (refund !== null) return { status: 200, body: presentRefund(refund) }
  const paymentIntent = presentIntent(intent, entry.expanded === true)
  if (entry.kind !== 'decline') return { status: 200, body: paymentIntent }
  return { status: 402, body: { error: { ...presentDecline(intent), payment_intent: paymentIntent } } }
}

export function seconds(ms: number): number {
  return Math.floor(ms / 1_000)
}
