import type { Fingerprint } from '../fingerprint/index.ts'

/** The operation of records whose keys belong to the account as a whole. */
export const ANY_OPERATION = 'any'

/** What a key is looked up by: never the key alone. */
export interface RecordId {
  readonly account: string
  readonly operation: string
  readonly key: string
}

/** What is stored and replayed. `body` is null when it was too large to be kept. */
export interface Reply {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer | null
  /** The version of the reply's own form, for code that reads it after a deploy. */
  readonly schema: number
  /** The id of the key that headers and body are sealed with; null when they are plain. */
  readonly sealedBy: string | null
}

/** Why an attempt did not complete. The message holds no card numbers and is short. */
export interface Failure {
  readonly code: string
  readonly message: string
}

/**
 * What protects the work of a record, and so what can be done when its owner vanished: a transaction was rolled back, an
 * operation is resumed, a handler is in doubt. `handler_rerunnable`: its author says that a second run does no harm.
 * A retryable record of that kind may hide effects of an earlier attempt. `handler_recoverable`: the process that claimed it had a `recover` for it, so it is worth asking.
 */
export type Kind = 'transaction' | 'operation' | 'handler' | 'handler_rerunnable' | 'handler_recoverable'

interface Common {
  readonly kind: Kind
  /** Rises by one whenever ownership is taken. */
  readonly fence: number
  /** Random for every attempt; the proof of who wrote the record. */
  readonly attemptId: string
  readonly owner: string
  readonly fingerprint: Fingerprint
  /** The span of the attempt, as W3C trace context writes it, so that a replay can point to it. */
  readonly trace: string | null
  /** An operator or `recover` has decided in the owner's place: the owner's own word counts no more. */
  readonly decided: boolean
  /** Steps of an operation are durable under it. */
  readonly hasSteps?: boolean
  /** Milliseconds since the epoch by the store's clock, as are all times of a record. */
  readonly createdAt: number
  readonly attemptedAt: number
  readonly changedAt: number
}

export interface InProgress extends Common {
  readonly state: 'in_progress'
  readonly leaseUntil: number
}

export interface Completed extends Common {
  readonly state: 'completed'
  readonly reply: Reply
  readonly expiresAt: number
}

export interface Retryable extends Common {
  readonly state: 'retryable'
  readonly failure: Failure
  readonly expiresAt: number
}

export interface Unknown extends Common {
  readonly state: 'unknown'
  readonly failure: Failure
  /** When it is looked into next what became of it; null where that was not written down, which counts as now. */
  readonly lookAt: number | null
  /** How often a look was taken; also the fence of the look that was taken last. */
  readonly looks: number
}

export interface Parked extends Common {
  readonly state: 'parked'
  readonly failure: Failure
}

export interface Expired extends Common {
  readonly state: 'expired'
  readonly expiresAt: number
}

/** The durable row for (scope, key). Only these combinations exist; the database refuses all others. */
export type OnceRecord = InProgress | Completed | Retryable | Unknown | Parked | Expired

export type State = OnceRecord['state']

/** The states that wait for an owner, a worker or an operator. Their records are never removed. */
export type UnfinishedState = 'in_progress' | 'unknown' | 'parked'

/** How many unfinished records are older than they should be. */
export interface StuckCount {
  readonly count: number
  /** Since the start of its last attempt, by the store's clock; 0 when there is none. */
  readonly oldestAgeMs: number
}

export type Stuck = Readonly<Record<UnfinishedState, StuckCount>>

/** An attempt that a later one superseded, as the history keeps it. */
export interface Attempt {
  readonly fence: number
  readonly attemptId: string
  readonly owner: string
  readonly startedAt: number
  /**
   * When its record came into the state that is its outcome, by itself or by a decision; of one that was abandoned, when its lease was over. Null while it is in
   * progress.
   */
  readonly endedAt: number | null
  readonly outcome: AttemptOutcome
  readonly failure: Failure | null
}

export type AttemptOutcome = 'abandoned' | State
