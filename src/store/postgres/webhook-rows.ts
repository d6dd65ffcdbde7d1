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
  const [id, url, types, description, state, why, createdAt, changedAt] = row
  return {
    id: withPrefix('we', id!),
    url: url!,
    types: types == null ? null : JSON.parse(types),
    description: description ?? null,
    state: state as WebhookEndpoint['state'],
    disabledWhy: (why ?? null) as WebhookEndpoint['disabledWhy'],
    createdAt: Number(createdAt),
    changedAt: Number(changedAt),
  }
}

export function readMessage([id, type, body, createdAt]: Row): StoredMessage {
  return { id: withPrefix('evt', id!), type: type!, body: body!, createdAt: Number(createdAt) }
}

export function readDelivery(row: Row): WebhookDelivery {
  const [endpoint, message, type, state, attempts, dueAt, createdAt, endedAt, status, code, text] = row
  return {
    endpoint: withPrefix('we', endpoint!),
    message: withPrefix('evt', message!),
    type: type!,
    state: state as WebhookDelivery['state'],
    attempts: Number(attempts),
    dueAt: numberOf(dueAt),
    createdAt: Number(createdAt),
    endedAt: numberOf(endedAt),
    status: numberOf(status),
    failure: failureOf(code, text),
  }
}

export function readTaken(row: Row): TakenDelivery {
  const [account, endpoint, message, fence, attempts, type, body, url, state, takenAt, secrets] = row
  return {
    account: account!,
    endpoint: withPrefix('we', endpoint!),
    message: withPrefix('evt', message!),
    fence: Number(fence),
    attempts: Number(attempts),
    type: type!,
    body: body!,
    url: url!,
    endpointState: state as TakenDelivery['endpointState'],
    takenAt: Number(takenAt),
    secrets: (JSON.parse(secrets ?? '[]') as [string, string | null][]).map(([hex, sealedBy]) => ({
      bytes: Buffer.from(hex, 'hex'),
      sealedBy,
    })),
  }
}

export function readDeliveryAttempt([fence, endedAt, durationMs, status, code, text]: Row): WebhookAttempt {
  return {
    fence: Number(fence),
    endedAt: Number(endedAt),
    durationMs: Number(durationMs),
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

export function secretValues({ bytes, sealedBy }: Sealed): [string, Buffer, string | null] {
  return [randomUUID(), bytes, sealedBy]
}

export function idValues({ account, endpoint, message }: DeliveryId): [string, string, string] {
  return [account, withoutPrefix(endpoint), withoutPrefix(message)]
}

export function afterValues(after: { createdAt: number; id: string } | null): [string | null, string | null] {
  return after === null ? [null, null] : [`${after.createdAt}`, withoutPrefix(after.id)]
}
