/** What a store has to do so that webhooks go out, and come in once. Optional: a store without a database has none of it. */
import type { Failure } from '../record/index.ts'
import type { Sealed } from '../seal/index.ts'
import type { JobDraft, Message } from './outbox.ts'

/** A receiver that wants to be told. */
export interface WebhookEndpoint {
  readonly id: string
  readonly url: string
  /** The types of events that it wants; `payment.*` is all that begin so. Null: all of them. */
  readonly types: readonly string[] | null
  readonly description: string | null
  readonly state: 'enabled' | 'disabled'
  /** `asked`: the service disabled it. `gone`: it answered 410. */
  readonly disabledWhy: 'asked' | 'gone' | null
  /** Milliseconds since the epoch, by the database's clock, as all times here. */
  readonly createdAt: number
  readonly changedAt: number
}

export interface EndpointDraft {
  readonly account: string
  readonly id: string
  readonly url: string
  readonly types: readonly string[] | null
  readonly description: string | null
}

/** What is not named stays as it is. */
export interface EndpointChanges {
  readonly url?: string
  readonly types?: readonly string[] | null
  readonly description?: string | null
  readonly state?: 'enabled' | 'disabled'
}

/** A message on its way out; its body is the very text that is signed and sent. */
export interface MessageDraft {
  readonly account: string
  readonly id: string
  readonly type: string
  readonly body: string
  readonly createdAt: number
}

export type StoredMessage = Omit<MessageDraft, 'account'>

export interface WebhookDelivery {
  readonly endpoint: string
  readonly message: string
  readonly type: string
  readonly state: 'pending' | 'delivered' | 'failed'
  /** Since it was last asked for. */
  readonly attempts: number
  /** When it is tried next; null when it has ended. */
  readonly dueAt: number | null
  readonly createdAt: number
  readonly endedAt: number | null
  /** Of the last attempt: what was answered, if anything was, and what was wrong. */
  readonly status: number | null
  readonly failure: Failure | null
}

export interface WebhookAttempt {
  readonly fence: number
  readonly endedAt: number
  readonly durationMs: number
  readonly status: number | null
  readonly failure: Failure | null
}

export interface DeliveryId {
  readonly account: string
  readonly endpoint: string
  readonly message: string
}

/** A delivery in the hands of one deliverer. */
export interface TakenDelivery extends DeliveryId {
  readonly fence: number
  /** This one included. */
  readonly attempts: number
  readonly type: string
  readonly body: string
  readonly url: string
  readonly endpointState: WebhookEndpoint['state'] | 'removed'
  /** When it was taken: what it is signed with. */
  readonly takenAt: number
  /** The newest first. Opened when they are read: one that cannot be opened harms no other delivery. */
  readonly secrets: readonly Sealed[]
}

export interface TakeDeliveries {
  readonly countMax: number
  readonly leaseMs: number
  readonly perEndpointMax: number
  /** How many the caller has of an endpoint already. */
  readonly busy: readonly { readonly account: string; readonly endpoint: string; readonly count: number }[]
}

export interface DeliveryEnd {
  readonly delivery: DeliveryId & Pick<TakenDelivery, 'fence' | 'attempts' | 'takenAt'>
  readonly end: 'delivered' | 'failed' | { readonly waitMs: number }
  readonly status: number | null
  readonly failure: Failure | null
  readonly durationMs: number
  /** The endpoint said at this address that it is gone: it is disabled, if it was not changed since the delivery was taken. */
  readonly goneUrl: string | null
}

export interface MessageList {
  readonly account: string
  readonly types: readonly string[] | null
  readonly from: number | null
  readonly to: number | null
  readonly after: { readonly createdAt: number; readonly id: string } | null
  readonly limit: number
}

export interface DeliveryList {
  readonly account: string
  readonly endpoint: string | null
  readonly message: string | null
  readonly after: { readonly message: string; readonly endpoint: string } | null
  readonly limit: number
}

export interface ReplayRange {
  readonly account: string
  readonly endpoint: string
  readonly from: number
  readonly to: number
  readonly after: { readonly createdAt: number; readonly id: string } | null
  readonly limit: number
}

export interface WebhookStore {
  /** Or why not: the account has as many as it may have, or one with this URL. */
  createEndpoint(
    draft: EndpointDraft,
    secret: Sealed,
    countMax: number,
  ): Promise<WebhookEndpoint | 'too_many' | 'url_taken'>
  /** In the order of their making; there is a bounded number of them. */
  listEndpoints(account: string): Promise<readonly WebhookEndpoint[]>
  getEndpoint(account: string, id: string): Promise<WebhookEndpoint | null>
  changeEndpoint(
    account: string,
    id: string,
    changes: EndpointChanges,
  ): Promise<WebhookEndpoint | 'url_taken' | null>
  removeEndpoint(account: string, id: string): Promise<boolean>
  /** The new secret is the current one; the others sign beside it for so long. */
  rotateSecret(account: string, id: string, secret: Sealed, keepMs: number): Promise<boolean>

  /** Keeps messages, and notes a delivery to every endpoint that wants them, in one transaction. What is there already stays. */
  fanOut(messages: readonly MessageDraft[]): Promise<void>
  take(request: TakeDeliveries): Promise<readonly TakenDelivery[]>
  /** `ours`: false, and the delivery was not changed, where another deliverer has taken it meanwhile. `disabled`: its endpoint was, by this. */
  end(end: DeliveryEnd): Promise<{ readonly ours: boolean; readonly disabled: boolean }>

  /**
   * Makes a delivery due again, from its first attempt on; or makes one. One that is under way and succeeds was that one; if it fails it
   * is due at once. False: there is no such message.
   */
  replay(delivery: DeliveryId): Promise<boolean>
  /** The same for messages of a range that the endpoint wants; answers those that were looked at, in order. */
  replayRange(range: ReplayRange): Promise<readonly { createdAt: number; id: string; replayed: boolean }[]>

  listMessages(list: MessageList): Promise<readonly StoredMessage[]>
  getMessage(account: string, id: string): Promise<StoredMessage | null>
  listDeliveries(list: DeliveryList): Promise<readonly WebhookDelivery[]>
  listAttempts(delivery: DeliveryId): Promise<readonly WebhookAttempt[]>

  /** Notes a message that came in, and stages its job, if it is new: the job's id. In a transaction of its own. */
  receive(message: Message, job: JobDraft): Promise<string | null>

  /** Removes one bounded batch of what is older, and of secrets whose time is over; says whether there is more. */
  clean(retentionMs: number): Promise<boolean>
}
