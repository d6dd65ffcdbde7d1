import type {
  Completed,
  Failure,
  InProgress,
  Parked,
  RecordId,
  Retryable,
  State,
  Unknown,
} from '../record/index.ts'
import type { Queryable, Seen } from './contract.ts'

/** What an operator sees of a record: everything but what it was asked and what it replied. Times as in a record. */
export interface RecordSummary extends RecordId {
  readonly state: State
  readonly fence: number
  readonly owner: string
  readonly createdAt: number
  readonly attemptedAt: number
  readonly changedAt: number
  readonly leaseUntil: number | null
  readonly expiresAt: number | null
  /** Also of a completed record whose handler threw or replied with 5xx, and of an operation that threw and was undone. */
  readonly failure: Failure | null
  /** The status of the stored reply; null where none is stored. */
  readonly replyStatus: number | null
  /** Of an operation; null where the record is of another kind. */
  readonly version: string | null
  readonly recoveryPoint: string | null
  readonly deadlineAt: number | null
  /** When it is found out next what became of it, and how often that was tried. */
  readonly lookAt: number | null
  readonly looks: number
  /** The key of the call whose outcome is in doubt. */
  readonly waitsFor: string | null
  /** The step of that call, and when the doubt about it began. See `in_doubt` of `show`, which also knows its generation. */
  readonly waitsStep: string | null
  readonly waitsSince: number | null
  /**
   * The last moment at which a call of an unfinished operation may have been sent. A lookup that finds nothing proves nothing before
   * `visibleWithinMs` have passed since then. Of a retryable operation: that of an attempt which was in doubt before, if any.
   */
  readonly sentUntil: number | null
  /** The keys of its calls that operators have declared void, in this order. */
  readonly voidCalls: readonly string[]
  readonly retentionMs: number | null
}

/** Where a page of a list ended. The time is in microseconds: several records may share a millisecond. */
export interface ListPosition extends RecordId {
  readonly attemptedAtUs: string
}

export interface ListRequest {
  readonly states: readonly State[]
  /** Null: of all accounts, which is possible for unfinished states and for failed handlers alone. */
  readonly account: string | null
  /** Under any operation of the account, which has to be given with it. */
  readonly key: string | null
  /** Only completed records of handlers that threw or replied with 5xx, which were not settled. */
  readonly failed: boolean
  readonly operation: string | null
  readonly olderThanMs: number
  readonly limit: number
  readonly after: ListPosition | null
}

export interface Listed {
  readonly record: RecordSummary
  readonly position: ListPosition
}

/** `voidCall`: a retry is allowed too, and its call gets a new key, because the earlier one is void. */
export type DecisionAction = 'resolve' | 'give_up' | 'allow_retry' | 'void_call' | 'park' | 'unpark'

/**
 * `add_evidence`: a person has told what became of a call. It changes no state by itself. `discard_result`: an operator says that the result of a call
 * is wrong, so that its call is in doubt again. `erase`: see operator/erase.ts.
 */
export type AuditAction = DecisionAction | 'add_evidence' | 'discard_result' | 'erase'

/** One decision of an operator, or what one has told, as it is kept. It outlives the record. */
export interface AuditEntry {
  readonly seq: number
  readonly at: number
  readonly by: string
  readonly why: string
  readonly action: AuditAction
  readonly from: State
  readonly to: State
  readonly fence: number
  /** The key of the call that was declared void, that evidence was told about, or whose result was discarded; null for every other decision. */
  readonly callKey: string | null
}

/** A step from one state to the next, as the functions of `record/` made it, and who took it. */
export interface DecideRequest {
  readonly id: RecordId
  /** One that is in progress only after its lease, which the store asks once more. */
  readonly from: Unknown | Parked | InProgress | Retryable
  readonly to: Completed | Retryable | Parked | Unknown
  /** From the decision on; null where the next state is not finished. */
  readonly retentionMs: number | null
  readonly action: DecisionAction
  /** The key of the call that is declared void: what the record waits for. */
  readonly voidCall: string | null
  readonly by: string
  readonly why: string
}

export interface SeenWithin extends Seen, Pick<RecordSummary, 'retentionMs' | 'waitsFor' | 'voidCalls'> {}

/** What operators need of a store, where it has it. */
export interface DecisionStore {
  /** The oldest attempt first. Locks nothing. */
  list(request: ListRequest): Promise<readonly Listed[]>

  summary(id: RecordId): Promise<RecordSummary | null>

  /** The decisions about a record, the oldest first; at most the newest hundred. */
  audit(id: RecordId): Promise<readonly AuditEntry[]>

  /** A record as a transaction of the caller's sees it, and how long its operation wants it kept. */
  lookWithin(tx: Queryable, id: RecordId): Promise<SeenWithin | null>

  /**
   * Takes the step and notes it, both or neither. False when the record is not any more what was seen of it. With `tx` it
   * joins that transaction, which it never aborts: what was decided stands once the caller has committed.
   */
  decide(request: DecideRequest, tx?: Queryable): Promise<boolean>
}
