import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { checkLimit, type Page, type PageOptions, pageOf, readCursor } from '../core/page.ts'
import type {
  DeliveryId,
  StoredMessage,
  WebhookAttempt,
  WebhookDelivery,
  WebhookStore,
} from '../store/webhooks.ts'
import { checkAccount, checkTime, isEndpointId, isMessageId, isTime, refuse } from './names.ts'

/** A message that was kept: what was told to its receivers. */
export interface WebhookMessage {
  readonly id: string
  readonly type: string
  /** What the event had to say. */
  readonly data: unknown
  readonly aggregate: string | null
  readonly sequence: number | null
  /** When the event was emitted, in milliseconds since the epoch. */
  readonly createdAt: number
}

export interface ListMessages extends PageOptions {
  readonly account: string
  readonly types?: readonly string[] | undefined
  /** From this time on, and before that one; in milliseconds since the epoch. */
  readonly from?: number | undefined
  readonly to?: number | undefined
}

export interface ListDeliveries extends PageOptions {
  readonly account: string
  readonly endpoint?: string | undefined
  readonly message?: string | undefined
}

export interface Messages {
  /** The newest first. */
  list(call: ListMessages): Promise<Page<WebhookMessage>>
  /** Throws `webhook_message_unknown`. */
  get(call: { readonly account: string; readonly id: string }): Promise<WebhookMessage>
}

export interface Deliveries {
  /** Those of the newest messages first. */
  list(call: ListDeliveries): Promise<Page<WebhookDelivery>>
  /** Every attempt of one delivery, the oldest first; at most the newest hundred. */
  attempts(delivery: DeliveryId): Promise<readonly WebhookAttempt[]>
}

const PAGE = { account: true, cursor: true, limit: true } as const
const LIST_MESSAGES: OptionNames<ListMessages> = { ...PAGE, types: true, from: true, to: true }
const LIST_DELIVERIES: OptionNames<ListDeliveries> = { ...PAGE, endpoint: true, message: true }

export function messagesOf(store: WebhookStore, ready: () => Promise<void>): Messages {
  return {
    async list(call) {
      refuseUnknown('messages.list()', call, LIST_MESSAGES)
      const account = checkAccount(call.account)
      const limit = checkLimit(call.limit)
      const { types = null } = call
      const names = Array.isArray(types) && types.every((type) => typeof type === 'string')
      if (types !== null && !(names && types.length <= LIMITS.webhookTypesMax)) {
        refuse(`types must be a list of at most ${LIMITS.webhookTypesMax} whole names.`)
      }
      const after = readCursor<[number, string]>(call.cursor, isTime, isMessageId)
      const from = call.from === undefined ? null : checkTime('from', call.from)
      const to = call.to === undefined ? null : checkTime('to', call.to)
      await ready()
      const found = await store.listMessages({
        account,
        // A filter that names no type at all matches none; and no text of PostgreSQL's holds a NUL.
        types: types?.filter((type) => !type.includes('\0')) ?? null,
        from,
        to,
        after: after === null ? null : { createdAt: after[0], id: after[1] },
        limit: limit + 1,
      })
      return pageOf(found, limit, ({ createdAt, id }) => [createdAt, id], messageOf)
    },
    async get(call) {
      refuseUnknown('messages.get()', call, { account: true, id: true })
      const { account, id } = call
      checkAccount(account)
      await ready()
      const found = isMessageId(id) ? await store.getMessage(account, id) : null
      if (found === null) throw new OnlyonceError('webhook_message_unknown')
      return messageOf(found)
    },
  }
}

export function deliveriesOf(store: WebhookStore, ready: () => Promise<void>): Deliveries {
  return {
    async list(call) {
      refuseUnknown('deliveries.list()', call, LIST_DELIVERIES)
      const { account, endpoint, message } = call
      checkAccount(account)
      const limit = checkLimit(call.limit)
      const after = readCursor<[string, string]>(call.cursor, isMessageId, isEndpointId)
      await ready()
      const nothing =
        (endpoint !== undefined && !isEndpointId(endpoint)) ||
        (message !== undefined && !isMessageId(message))
      if (nothing) return { items: [], cursor: null }
      const found = await store.listDeliveries({
        account,
        endpoint: endpoint ?? null,
        message: message ?? null,
        after: after === null ? null : { message: after[0], endpoint: after[1] },
        limit: limit + 1,
      })
      return pageOf(
        found,
        limit,
        (one) => [one.message, one.endpoint],
        (one) => one,
      )
    },
    async attempts({ account, endpoint, message }) {
      checkAccount(account)
      await ready()
      if (!isEndpointId(endpoint) || !isMessageId(message)) return []
      return await store.listAttempts({ account, endpoint, message })
    },
  }
}

function messageOf({ id, type, body, createdAt }: StoredMessage): WebhookMessage {
  const { data, aggregate, sequence } = JSON.parse(body)
  return { id, type, data, aggregate, sequence, createdAt }
}
