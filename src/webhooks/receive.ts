import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import { inbox, outbox } from '../outbox/index.ts'
import type { OpenTransaction } from '../store/contract.ts'
import { checkName, draftJob } from '../store/outbox.ts'
import { checkAccount } from './names.ts'
import { rawBytes } from './verify.ts'
import { webhooksOf } from './webhooks.ts'

export interface ReceiveCall {
  readonly account: string
  /** Who sends: the same id of another source is another message. */
  readonly source: string
  /** What duplicates are told by: that of the message, not of the attempt. */
  readonly id: string
  /** The bytes that were verified; text in UTF-8. */
  readonly payload: Uint8Array
  /**
   * The job that does what is to be done. By default `webhook.` and the source.
   *
   * @default `webhook.` and the source
   */
  readonly job?: string | undefined
  /**
   * A transaction of yours that it becomes a part of. By default it has one of its own.
   *
   * @default a transaction of its own
   */
  readonly tx?: OpenTransaction | undefined
}

const NAMES: OptionNames<ReceiveCall> = {
  account: true,
  source: true,
  id: true,
  payload: true,
  job: true,
  tx: true,
}

/** What the job is given as its payload. */
export interface ReceivedWebhook {
  readonly source: string
  readonly id: string
  /** The text that came in, letter for letter. */
  readonly body: string
}

/** `seen`: it came before, and its job was staged then. */
export type Received = { readonly outcome: 'staged'; readonly jobId: string } | { readonly outcome: 'seen' }

/**
 * Keeps a webhook that was verified, and stages a job for it, in one commit and once for each id. When this resolves, answer 2xx: the relay
 * runs the job, again and again until it succeeds. Duplicates are dropped for as long as the inbox remembers, 30 days by default.
 *
 * @example
 * const { id, payload } = verifyWebhook({ scheme: 'stripe', headers: request.headers, body: raw, secrets })
 * await receiveWebhook(once, { account, source: 'stripe', id, payload })
 */
export async function receiveWebhook<Tx>(once: Onlyonce<Tx>, call: ReceiveCall): Promise<Received> {
  refuseUnknown('receiveWebhook()', call, NAMES)
  const { store, ready } = webhooksOf(once)
  const account = checkAccount(call.account)
  const source = checkName('source', call.source)
  const messageId = checkName('id', call.id)
  const payload: ReceivedWebhook = { source, id: messageId, body: textOf(call.payload) }
  const job = checkName('job', call.job ?? `webhook.${source}`)
  const message = { account, source, messageId }
  const { tx } = call
  if (tx === undefined) {
    await ready()
    const jobId = await store.receive(message, draftJob({ job, payload }))
    return jobId === null ? { outcome: 'seen' } : { outcome: 'staged', jobId }
  }
  const done = await inbox(once).once(tx, message, () => outbox(once).stage(tx, { account, job, payload }))
  if (done.outcome === 'seen') return done
  // Without a key a job is always staged.
  return { outcome: 'staged', jobId: (done.value as { id: string }).id }
}

/** Bytes that are no text would be changed by becoming a job's payload. */
function textOf(payload: unknown): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(rawBytes(payload))
  } catch (cause) {
    if (cause instanceof OnlyonceError) throw cause
    throw new OnlyonceError('webhook_payload_invalid', { detail: 'It is not UTF-8.', cause })
  }
}
