import { randomUUID } from 'node:crypto'
import type { Failure } from '../../record/index.ts'
import type { Sealed } from '../../seal/index.ts'
import { withoutPrefix, withPrefix } from '../event-id.ts'
import type {
  DeliveryId,
  StoredMessage,
  TakenDelivery,
  WebhookAttempt,
  WebhookDelivery,
  WebhookEndpoint,
} from '../webhooks.ts'
import type { Row } from './flush.ts'

export function readEndpoint(row: Row): WebhookEndpoint {
  const [id, url, types, description, state, why, created_at, changed_at] = row
  return {
    id: withPrefix('we', id!),
    url: url!,
    types: types == null ? null : JSON.parse(types),
    description: description ?? null,
    state: state as WebhookEndpoint['state'],
    disabled_why: (why ?? null) as WebhookEndpoint['disabled_why'],
    created_at: Number(created_at),
    changed_at: Number(changed_at),
  }
}

export function readMessage([id, type, body, created_at]: Row): StoredMessage {
  return { id: withPrefix('evt', id!), type: type!, body: body!, created_at: Number(created_at) }
}

export function readDelivery(row: Row): WebhookDelivery {
  const [endpoint, message, type, state, attempts, due_at, created_at, ended_at, status, code, text] = row
  return {
    endpoint: withPrefix('we', endpoint!),
    message: withPrefix('evt', message!),
    type: type!,
    state: state as WebhookDelivery['state'],
    attempts: Number(attempts),
    due_at: numberOf(due_at),
    created_at: Number(created_at),
    ended_at: numberOf(ended_at),
    status: numberOf(status),
    failure: failureOf(code, text),
  }
}

export function readTaken(row: Row): TakenDelivery {
  const [account, endpoint, message, fence, attempts, type, body, url, state, taken_at, secrets] = row
  return {
    account: account!,
    endpoint: withPrefix('we', endpoint!),
    message: withPrefix('evt', message!),
    fence: Number(fence),
    attempts: Number(attempts),
    type: type!,
    body: body!,
    url: url!,
    endpoint_state: state as TakenDelivery['endpoint_state'],
    taken_at: Number(taken_at),
    secrets: (JSON.parse(secrets ?? '[]') as [string, string | null][]).map(([hex, sealed_by]) => ({
      bytes: Buffer.from(hex, 'hex'),
      sealed_by,
    })),
  }
}

export function readDeliveryAttempt([fence, ended_at, duration_ms, status, code, text]: Row): WebhookAttempt {
  return {
    fence: Number(fence),
    ended_at: Number(ended_at),
    duration_ms: Number(duration_ms),
    status: numberOf(status),
    failure: failureOf(code, text),
  }
}

function numberOf(text: string | null | undefined): number | null {
  return text == null ? null : Number(text)
}

function failureOf(code: string | null | undefined, message: string | null | undefined): Failure | null {
  return code == null ? null : { code, message: message ?? '' }
}

export function secretValues({ bytes, sealed_by }: Sealed): [string, Buffer, string | null] {
  return [randomUUID(), bytes, sealed_by]
}

export function idValues({ account, endpoint, message }: DeliveryId): [string, string, string] {
  return [account, withoutPrefix(endpoint), withoutPrefix(message)]
}

export function afterValues(
  after: { created_at: number; id: string } | null,
): [string | null, string | null] {
  return after === null ? [null, null] : [`${after.created_at}`, withoutPrefix(after.id)]
}
