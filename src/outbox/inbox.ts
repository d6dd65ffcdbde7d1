import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { scopeOf } from '../key/index.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import type { OpenTransaction } from '../store/contract.ts'
import { keepOpen } from '../store/keep-open.ts'
import { checkName, type Message } from '../store/outbox.ts'
import { outboxOf } from './outbox.ts'

export type InboxResult<T> =
  | { readonly outcome: 'executed'; readonly value: T }
  | { readonly outcome: 'seen' }

const NAMES: OptionNames<Message> = { account: true, source: true, messageId: true }

export interface Inbox {
  /**
   * Does something for a message unless it was done before, in your transaction. A message whose first delivery is
   * still in an open transaction is waited for. When the function throws, all that it did in the transaction is
   * undone, and the message stays unseen.
   *
   * @example
   * await inbox(once).once(tx, { account, source: 'stripe', messageId: event.id }, async () => {
   *   await ledger.post(tx, event)
   * })
   */
  once<T>(tx: OpenTransaction, message: Message, work: () => Promise<T>): Promise<InboxResult<T>>
}

/**
 * Drops messages that were seen before: what a receiver of events, or of webhooks, needs.
 *
 * @example
 * const { outcome } = await inbox(once).once(tx, { account, source: 'orders', messageId }, () => apply(tx, message))
 */
export function inbox<Tx>(once: Onlyonce<Tx>): Inbox {
  const { store, ready } = outboxOf(once)
  return {
    async once(tx, message, work) {
      refuseUnknown('inbox.once()', message, NAMES)
      const { account } = scopeOf(message.account, 'inbox')
      const source = checkName('source', message.source)
      const messageId = checkName('messageId', message.messageId)
      const done = await keepOpen(tx, async () => {
        await ready()
        return await store.inbox(tx, { account, source, messageId }, work)
      })
      return done === null ? { outcome: 'seen' } : { outcome: 'executed', value: done.value }
    },
  }
}
