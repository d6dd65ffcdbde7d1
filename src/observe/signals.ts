/**
 * What there is to notice about protected calls and their records: one vocabulary, free of any vendor. Metrics,
 * log lines and alarms are made from it, and from nothing else.
 */
import type { Failure, RecordId, State, Stuck } from '../record/index.ts'

export type Protection = 'transaction' | 'within' | 'handler' | 'operation'

/**
 * What became of a call. `invalid`: its work said that the request itself is wrong, and did nothing. `failed`: it threw before anything
 * could be told.
 */
export type CallOutcome =
  | 'executed'
  | 'replayed'
  | 'in_progress'
  | 'key_reused'
  | 'unknown'
  | 'parked'
  | 'invalid'
  | 'failed'

/**
 * What a caller met under its key. `created`: nothing, it was the first. `failed_retry`: a record that may run
 * again, and it did. Every call whose key was looked up is told by exactly one of these, or by `key_misuse`.
 */
export type Reserved = 'created' | 'replay' | 'in_progress' | 'failed_retry' | 'unknown' | 'parked'

/** The step of the store in which an error came. */
export type StoreStep =
  | 'start'
  | 'look'
  | 'history'
  | 'claim'
  | 'complete'
  | 'release'
  | 'forget'
  | 'doubt'
  | 'extend'
  | 'transact'
  | 'settle'
  | 'leave_retryable'
  | 'within'
  | 'stuck'
  | 'recover'
  | 'operation'
  | 'reap'
  | 'lock'
  | 'list'
  | 'decide'
  | 'outbox'
  | 'webhook'

interface OfCall {
  readonly protection: Protection
  /** With the whole key, for code alone. What is shown to anybody goes through `logFields`. */
  readonly id: RecordId
}

export interface CallEnded extends OfCall {
  readonly signal: 'call_ended'
  readonly outcome: CallOutcome
  /** The error that the caller got, also beside an outcome: a replayed failure is both. Masked and short. */
  readonly failure: Failure | null
  /** A code of the table of errors; `thrown` for what the work threw; null without an error. */
  readonly code: string | null
  /** Of the attempt that ran, or that is replayed; null where none is known. */
  readonly fence: number | null
  /** It waited for another call of this process with the same key. */
  readonly joined: boolean
  readonly durationMs: number
}

/**
 * `away`: the destination took nothing, and is asked again later. `gone`: it says that it will never take anything
 * again. `held`: it did not take this event, which is tried again. `parked`: so often that it is not tried any more.
 */
export interface OutboxFailed {
  readonly signal: 'outbox_failed'
  readonly destination: string
  readonly kind: 'away' | 'gone' | 'held' | 'parked'
  readonly failure: Failure
  readonly event: { readonly account: string; readonly id: string; readonly type: string } | null
}

export interface JobEnded {
  readonly signal: 'job_ended'
  readonly job: string
  readonly account: string
  readonly jobId: string
  /** `again`: it failed and is tried again. `parked`: so often that it is not tried any more. */
  readonly outcome: 'done' | 'again' | 'parked'
  readonly attempts: number
  readonly failure: Failure | null
  readonly durationMs: number
}

/**
 * One attempt to deliver a webhook. `again`: it failed and is tried again. `failed`: so often, or to an endpoint that is disabled, that
 * it is not tried any more.
 */
export interface WebhookAttempted {
  readonly signal: 'webhook_attempted'
  readonly account: string
  readonly endpoint: string
  readonly message: string
  readonly type: string
  readonly outcome: 'delivered' | 'again' | 'failed'
  readonly attempts: number
  /** Null: there was no answer. */
  readonly status: number | null
  readonly failure: Failure | null
  readonly durationMs: number
}

/**
 * `close` waited for as long as it was told to, and this much still ran. A transaction is rolled back by the server, an operation is handed
 * over, and the outcome of a handler is unknown.
 */
export interface CutOff {
  readonly signal: 'cut_off'
  readonly transactions: number
  readonly handlers: number
  readonly operations: number
}

export type Signal =
  | (OfCall & { readonly signal: 'call_started' })
  | CallEnded
  | (OfCall & { readonly signal: 'reserved'; readonly kind: Reserved; readonly fence: number | null })
  /** Same key, other request: a client's bug, or an attack. */
  | (OfCall & { readonly signal: 'key_misuse'; readonly security: true })
  /** A record in progress was found whose lease had run out. */
  | (OfCall & { readonly signal: 'zombie_key' })
  /**
   * A handler threw, or replied with 5xx, and that is stored as its reply. Whether it took effect before is not known, and it is not run
   * again: an operator should look. `status` is that of the stored reply.
   */
  | (OfCall & {
      readonly signal: 'handler_failed'
      readonly failure: Failure
      readonly status: number
      readonly fence: number | null
    })
  /**
   * A call of an operation ended without an answer of its function, and the same request may run again: a step failed by an error of the
   * database, a call was not executed, or the function threw. `step` is the one that the function had come to; null before the first.
   * `failure` is the reason, which clients are not told.
   */
  | (OfCall & {
      readonly signal: 'operation_failed'
      readonly step: string | null
      readonly failure: Failure
    })
  /** An owner found that another has its record. */
  | (OfCall & { readonly signal: 'lease_lost'; readonly fence: number | null })
  /**
   * A transaction ended without a statement on its `tx`: what its function wrote is elsewhere, and a retry may write it again. `first`
   * for the first one of its operation in this process.
   */
  | (OfCall & { readonly signal: 'tx_unused'; readonly first: boolean })
  /**
   * A statement of a transaction failed and its function went on as if it had not, so everything was rolled back. A mistake in the
   * function: it has to throw, or to use a savepoint. `first` as above.
   */
  | (OfCall & {
      readonly signal: 'tx_error_ignored'
      readonly first: boolean
      readonly failure: Failure
    })
  /** `admit` of the route refused it, under this code. It has claimed no key. */
  | (OfCall & { readonly signal: 'not_admitted'; readonly code: string })
  /** So many callers, more than one, shared one flight. */
  | (OfCall & { readonly signal: 'herd'; readonly size: number })
  | {
      readonly signal: 'store_error'
      readonly step: StoreStep
      /** A code of the table of errors, or PostgreSQL's five characters, or `other`. */
      readonly code: string
      /** Why the store could not be used, in a word such as `refused`, `silent` or `reset`; null for any other error. */
      readonly reason: string | null
      readonly message: string
      readonly id: RecordId | null
    }
  /**
   * The store cannot be used: told when it goes away, and again at most every 30 s. `failures` and `awayMs` count from when it went away. `code`
   * and `reason` are of the last failure.
   */
  | {
      readonly signal: 'store_away'
      readonly code: string
      readonly reason: string
      readonly message: string
      readonly failures: number
      readonly awayMs: number
    }
  /** The store answers again. Told once after `store_away`. */
  | { readonly signal: 'store_back'; readonly failures: number; readonly awayMs: number }
  /**
   * A route met something that is wrong with the service itself: its code, its settings, or its pool. `message` says what to change. `first`
   * for the first one with this code on this route in this process.
   */
  | {
      readonly signal: 'mistake'
      readonly route: string
      readonly code: string
      readonly message: string
      readonly first: boolean
    }
  /** A record became unknown: its outcome has to be found out. */
  | { readonly signal: 'reconcile_scheduled'; readonly id: RecordId; readonly failure: Failure }
  | { readonly signal: 'reconcile_resolved'; readonly id: RecordId; readonly state: State }
  | { readonly signal: 'reconcile_failed'; readonly id: RecordId; readonly failure: Failure }
  /** No worker goes on with a record any more: an operator has to decide. */
  | { readonly signal: 'parked'; readonly id: RecordId; readonly failure: Failure }
  /**
   * An operation in doubt, or one whose owner vanished, is long overdue and no worker takes it: no process runs workers that have its code, or
   * none of them can go on with it. Told of the record that has waited longest, about once an hour for each operation.
   */
  | { readonly signal: 'unattended'; readonly id: RecordId }
  /** Evidence tells of a call that an operator has declared void. It may have been made twice, under two keys. */
  | { readonly signal: 'void_call_happened'; readonly id: RecordId; readonly callKey: string }
  | { readonly signal: 'ttl_pruned'; readonly count: number }
  /** A batch of a worker failed; it is tried again. */
  | {
      readonly signal: 'worker_failed'
      readonly worker: string
      /** These two as in `store_error`. */
      readonly code: string
      readonly reason: string | null
      readonly message: string
    }
  | { readonly signal: 'stuck'; readonly olderThanMs: number; readonly stuck: Stuck }
  /** How far one destination is behind. */
  | {
      readonly signal: 'outbox_lag'
      readonly destination: string
      readonly count: number
      readonly oldestAgeMs: number
      readonly parked: number
    }
  | { readonly signal: 'outbox_delivered'; readonly destination: string; readonly count: number }
  | OutboxFailed
  | JobEnded
  | WebhookAttempted
  | CutOff
  /** An endpoint answered that it is gone, and gets nothing any more. */
  | { readonly signal: 'webhook_disabled'; readonly account: string; readonly endpoint: string }

/** One call, as it is told to observers that trace it. */
export interface TracedCall {
  readonly protection: Protection
  readonly id: RecordId
}

/** A span that belongs to the same action: of the attempt whose reply is replayed, or of the flight that was shared. */
export interface TraceLink {
  readonly to: 'original' | 'flight'
  /** As W3C trace context writes it. Comes from the database: it may be anything. */
  readonly traceparent: string
}

/** One call under way, in the eyes of one observer. */
export interface CallTrace {
  /** The span of the call, as W3C trace context writes it; its record keeps it. */
  readonly traceparent: string | null
  /** Runs the call inside the span, so that what it does becomes a part of it. */
  run<T>(work: () => T): T
  end(end: CallEnded, links: readonly TraceLink[]): void
}

/**
 * What is told of all signals. What it throws never reaches a caller.
 *
 * @example
 * const siem: Observer = {
 *   signal(signal) {
 *     if (signal.signal === 'key_misuse') queue.push(logFields(signal))
 *   },
 * }
 * const once = onlyonce({ store, secret, observe: [siem, logTo(logger)] })
 */
export interface Observer {
  /** Called with every signal, in the middle of a request: be quick. */
  signal?(signal: Signal): void
  /** Called at the start of every call. */
  trace?(call: TracedCall): CallTrace | null
}
