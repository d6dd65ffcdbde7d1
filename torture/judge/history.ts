/**
 * What one run left behind, as plain data: the clients' log, the processor's journal, the database, the webhook sink and
 * the processes. The judge reads nothing else, and shares no code with the service or the library.
 */
export interface History {
  readonly scenario: string
  readonly seed: number
  readonly attempts: readonly Attempt[]
  readonly journal: readonly Movement[]
  readonly database: Database
  /** The webhook endpoints of the run, by account. */
  readonly endpoints: readonly { readonly account: string; readonly path: string }[]
  readonly deliveries: readonly Delivery[]
  readonly processes: readonly ProcessLife[]
  /** Places (a table, a log, an answer) in which the canary card number was found. */
  readonly canarySeenIn: readonly string[]
  /** How long after the last fault everything was terminal or parked; null if it was not within the limit. */
  readonly quietS: number | null
  readonly quietLimitS: number
  /** What the documentation promises: the codes of problems, with their statuses. */
  readonly documented: ReadonlyMap<string, ReadonlySet<number>>
  /** Reasons for parking that docs/guides/operating.md explains. */
  readonly parkReasons: ReadonlySet<string>
}

export type Action = 'create' | 'capture' | 'cancel' | 'refund' | 'transfer'

/** One request that a client sent, and what came back. Times are milliseconds by the clock of the driver. */
export interface Attempt {
  readonly account: string
  readonly action: Action
  readonly key: string
  /** A digest of the body as it was sent. */
  readonly body: string
  /** What a capture, a cancellation or a refund is of. */
  readonly payment: string | null
  readonly amount: number | null
  readonly sentAt: number
  readonly endedAt: number
  readonly end: 'answered' | 'timed_out' | 'hung_up' | 'network_error'
  readonly status: number | null
  readonly replayed: boolean
  readonly contentType: string
  readonly text: string
  readonly server: string
}

/** One line of the processor's journal. */
export interface Movement {
  readonly kind: 'authorization' | 'capture' | 'void' | 'refund' | 'decline'
  readonly at: number
  readonly payment_intent: string
  readonly amount: number
  readonly currency: string
  readonly metadata: Readonly<Record<string, string>>
  readonly capture_method?: 'automatic' | 'manual'
}

export interface Database {
  readonly records: readonly RecordRow[]
  readonly payments: readonly PaymentRow[]
  readonly captures: readonly PartRow[]
  readonly refunds: readonly PartRow[]
  readonly transfers: readonly TransferRow[]
  readonly entries: readonly EntryRow[]
  readonly events: readonly EventRow[]
  /** Messages that still wait for another try at their endpoint. */
  readonly pendingMessages: readonly { readonly account: string; readonly id: string }[]
}

export interface RecordRow {
  readonly account: string
  readonly operation: string
  readonly key: string
  readonly state: string
  readonly reply_status: number | null
  readonly error_code: string | null
}

export interface PaymentRow {
  readonly account: string
  readonly id: string
  readonly status: string
  readonly amount: number
  readonly currency: string
  readonly idempotency_key: string
  readonly gateway_id: string | null
  readonly captured: number
  readonly refunded: number
}

/** A capture or a refund. */
export interface PartRow {
  readonly account: string
  readonly payment: string
  readonly id: string
  readonly amount: number
  readonly status: string
  readonly idempotency_key: string
}

export interface TransferRow {
  readonly account: string
  readonly id: string
  readonly destination: string
  readonly amount: number
  readonly currency: string
  readonly status: string
}

export interface EntryRow {
  readonly account: string
  readonly transaction: string
  readonly ledger_account: string
  readonly currency: string
  readonly amount: number
  readonly state: string
}

export interface EventRow {
  readonly account: string
  readonly id: string
  readonly aggregate: string | null
  readonly sequence: number | null
  readonly type: string
}

/** A webhook that the sink received and answered with 2xx. */
export interface Delivery {
  readonly path: string
  readonly id: string
  readonly body: string
}

export interface ProcessLife {
  readonly name: string
  /** Why it ended: the driver did it, it was running at the end, or it ended by itself. */
  readonly end: 'by_driver' | 'alive' | 'by_itself'
  readonly output: string
  /** Samples of the resident memory and of open descriptors, in order. */
  readonly samples: readonly { readonly rssMb: number; readonly descriptors: number }[]
}

/** What the judge found. */
export interface Violation {
  /** The invariant, by the name that docs/explanation/guarantees.md uses. */
  readonly rule: string
  readonly what: string
}
