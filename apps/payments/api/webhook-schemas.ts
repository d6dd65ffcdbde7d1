import type { WebhookDelivery, WebhookEndpoint } from 'onlyonce/webhooks'
import { Type } from 'typebox'
import { Nullable, Timestamp } from './schemas.ts'

export const Endpoint = Type.Object({
  id: Type.String(),
  url: Type.String(),
  types: Nullable(Type.Array(Type.String())),
  description: Nullable(Type.String()),
  state: Type.Enum(['enabled', 'disabled']),
  disabled_why: Nullable(Type.Enum(['asked', 'gone'], { description: 'gone: it answered 410.' })),
  created_at: Timestamp,
  changed_at: Timestamp,
})

export const EndpointWithSecret = Type.Object({
  ...Endpoint.properties,
  secret: Type.String({ description: 'Signs what is sent, as Standard Webhooks has it.' }),
})

export const Delivery = Type.Object({
  event: Type.String(),
  type: Type.String(),
  state: Type.Enum(['pending', 'delivered', 'failed']),
  attempts: Type.Integer(),
  due_at: Nullable(Timestamp),
  created_at: Timestamp,
  ended_at: Nullable(Timestamp),
  status: Nullable(Type.Integer({ description: 'What the endpoint answered last.' })),
  failure: Nullable(Type.String()),
})

export function presentEndpoint({ disabledWhy, createdAt, changedAt, ...endpoint }: WebhookEndpoint) {
  return {
    ...endpoint,
    disabled_why: disabledWhy,
    created_at: new Date(createdAt),
    changed_at: new Date(changedAt),
  }
}

export function presentDelivery(delivery: WebhookDelivery) {
  const { message, type, state, attempts, status, failure } = delivery
  return {
    event: message,
    type,
    state,
    attempts,
    due_at: timeOf(delivery.dueAt),
    created_at: new Date(delivery.createdAt),
    ended_at: timeOf(delivery.endedAt),
    status,
    failure: failure?.message ?? null,
  }
}

function timeOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}
