import type { Publisher } from '../outbox/index.ts'
import type { CrashPoint } from '../store/contract.ts'
import type { OutboxEvent } from '../store/outbox.ts'
import type { WebhookStore } from '../store/webhooks.ts'
import { isoOf } from './clock.ts'

/** What a receiver is sent, as JSON. */
export interface WebhookBody {
  /** That of the event, and of the header webhook-id. */
  readonly id: string
  readonly type: string
  /** When it happened, as ISO 8601 writes it. */
  readonly timestamp: string
  readonly data: unknown
  /** What it happened to, and the how manieth event of that it is: webhooks come in any order, and this tells theirs. */
  readonly aggregate: string | null
  readonly sequence: number | null
}

/** A destination of the outbox that keeps each event as a message, and notes a delivery for each endpoint that wants it. */
export function fanOut(store: WebhookStore, crashPoint: CrashPoint): Publisher {
  return {
    async publish(events) {
      crashPoint('webhooks.fan_out.before')
      await store.fanOut(
        events.map((event) => ({
          account: event.account,
          id: event.id,
          type: event.type,
          // Made here, once: what is signed and sent is this text, on every attempt.
          body: JSON.stringify(bodyOf(event)),
          createdAt: event.emittedAt,
        })),
      )
      crashPoint('webhooks.fan_out.after')
    },
  }
}

function bodyOf({ id, type, emittedAt, payload, aggregate, sequence }: OutboxEvent): WebhookBody {
  return { id, type, timestamp: isoOf(emittedAt), data: payload, aggregate, sequence }
}
