import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { cursorOf, readCursor } from '../core/page.ts'
import type { ReplayRange, WebhookStore } from '../store/webhooks.ts'
import { checkAccount, checkTime, isEndpointId, isMessageId, isTime, refuse } from './names.ts'

/** One message to one endpoint, also when it was delivered, or is of a type that the endpoint does not want. */
export interface ReplayOne {
  readonly account: string
  readonly endpoint: string
  readonly message: string
}

/** All that the endpoint wants of what happened from one time on and before another, in milliseconds since the epoch. */
export interface ReplayMany {
  readonly account: string
  readonly endpoint: string
  readonly from: number
  readonly to: number
  /**
   * Of the call before.
   *
   * @default the beginning
   */
  readonly cursor?: string | null | undefined
}

export interface Replayed {
  /** Deliveries that were made due. */
  readonly count: number
  /** Where the next call goes on; null where all is done. */
  readonly cursor: string | null
}

const NAMES: OptionNames<ReplayOne | ReplayMany> = {
  account: true,
  endpoint: true,
  message: true,
  from: true,
  to: true,
  cursor: true,
}

/** Before anything is waited for. */
export function checkReplay(call: ReplayOne | ReplayMany): void {
  refuseUnknown('replay()', call, NAMES)
}

export async function replay(store: WebhookStore, call: ReplayOne | ReplayMany): Promise<Replayed> {
  const account = checkAccount(call.account)
  const range = 'message' in call && call.message !== undefined ? null : rangeOf(call as ReplayMany)
  const endpoint = isEndpointId(call.endpoint) ? await store.getEndpoint(account, call.endpoint) : null
  if (endpoint === null) throw new OnlyonceError('webhook_endpoint_unknown')
  if (endpoint.state !== 'enabled') throw new OnlyonceError('webhook_endpoint_disabled')
  if (range !== null) return await replayRange(store, { account, endpoint: endpoint.id, ...range })
  const { message } = call as ReplayOne
  const known = isMessageId(message) && (await store.replay({ account, endpoint: endpoint.id, message }))
  if (!known) throw new OnlyonceError('webhook_message_unknown')
  return { count: 1, cursor: null }
}

/** A transaction for each batch: a crash in between has replayed a part, and the call may be made again. */
async function replayRange(store: WebhookStore, given: Omit<ReplayRange, 'limit'>): Promise<Replayed> {
  const batchMax = LIMITS.webhookReplayBatchMax
  let { after } = given
  let count = 0
  for (let looked = 0; looked < LIMITS.webhookReplayMax; looked += batchMax) {
    const batch = await store.replayRange({ ...given, after, limit: batchMax })
    count += batch.filter(({ replayed }) => replayed).length
    if (batch.length < batchMax) return { count, cursor: null }
    after = batch.at(-1)!
  }
  return { count, cursor: cursorOf(after!.createdAt, after!.id) }
}

function rangeOf(call: ReplayMany): Pick<ReplayRange, 'from' | 'to' | 'after'> {
  const [from, to] = [checkTime('from', call.from), checkTime('to', call.to)]
  if (from > to) refuse('from must not be later than to.')
  const after = readCursor<[number, string]>(call.cursor, isTime, isMessageId)
  return { from, to, after: after === null ? null : { createdAt: after[0], id: after[1] } }
}
