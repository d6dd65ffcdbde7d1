import type { Effect } from './index.ts'
import { presentCharge, presentIntent, presentRefund, seconds } from './present.ts'

/** The version of the API whose shapes these are. */
export const API_VERSION = '2026-10-28.endive'

type EventType =
  | 'payment_intent.succeeded'
  | 'payment_intent.payment_failed'
  | 'payment_intent.canceled'
  | 'payment_intent.amount_capturable_updated'
  | 'charge.captured'
  | 'charge.refunded'
  | 'refund.created'

/** What a movement is announced as, in order. */
function typesOf({ entry, intent }: Effect): readonly EventType[] {
  switch (entry.kind) {
    case 'authorization':
      return ['payment_intent.amount_capturable_updated']
    case 'capture': {
      if (intent.previous === null) return ['payment_intent.succeeded']
      const isOver = intent.status === 'succeeded'
      return [
        'charge.captured',
        isOver ? 'payment_intent.succeeded' : 'payment_intent.amount_capturable_updated',
      ]
    }
    case 'void':
      return ['payment_intent.canceled']
    case 'refund':
      return ['refund.created', 'charge.refunded']
    case 'decline':
      return ['payment_intent.payment_failed']
    default:
      return entry.kind satisfies never
  }
}

/** The events of a movement. They are made of it whenever somebody asks, and are always the same. */
export function eventsOf(effect: Effect) {
  const { entry } = effect
  return typesOf(effect).map((type, index) => ({
    id: `evt_${entry.nonce}${index}`,
    object: 'event' as const,
    api_version: API_VERSION,
    created: seconds(entry.at),
    data: { object: objectOf(type, effect) },
    livemode: false,
    pending_webhooks: 0,
    request: { id: entry.request, idempotency_key: entry.key },
    type,
  }))
}

export type GatewayEvent = ReturnType<typeof eventsOf>[number]

function objectOf(type: EventType, { intent, refund }: Effect): object {
  if (type.startsWith('payment_intent.')) return presentIntent(intent, false)
  return type === 'refund.created' ? presentRefund(refund!) : presentCharge(intent)
}
