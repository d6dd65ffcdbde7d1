import type { OnlyonceError } from '../core/errors.ts'
import type { KeyPurpose } from '../core/ring.ts'
import type { Fingerprint } from '../fingerprint/index.ts'
import type {
  Attempt,
  Claimant,
  Decision,
  Failure,
  OnceRecord,
  RecordId,
  Reply,
  Run,
  Stuck,
  Takeover,
} from '../record/index.ts'
import type { DecisionStore } from './decisions.ts'
import type { LockStore } from './locks.ts'
import type { OperationStore } from './operations.ts'
import type { OutboxStore } from './outbox.ts'
import type { RecoveryStore } from './recovery.ts'
import type { WebhookStore } from './webhooks.ts'

/** The one method that onlyonce needs of a transaction that is not its own. pg's client has it. */
export interface Queryable {
  // biome-ignore lint/suspicious/noExplicitAny: drivers type their rows in ways that only `any` accepts.
  query(text: string, values?: any[]): Promise<{ rows: any[] }>
}

/**
 * The same with a transaction open on it. The type refuses a pool of pg's, which gives each statement another connection. Whether BEGIN was
 * sent is asked when it is used.
 */
export type OpenTransaction = Queryable & { readonly totalCount?: never }

/**
 * Called with the name of a place where a crash is interesting. Does nothing unless a test injects one that
 * ends the process.
 */
export type CrashPoint = (point: string) => void

/** A record together with the store's clock at the moment of reading. */
export interface Seen {
  readonly record: OnceRecord
  readonly now: number
}

export interface ClaimRequest {
  readonly id: RecordId
  readonly claimant: Claimant
  /** Whether a stored fingerprint is that of this request; rotation of secrets is the caller's business. */
  readonly matches: (stored: Fingerprint) => boolean
  readonly leaseMs: number
  readonly takeover: Takeover
  /** How long the record is kept once it is finished, for a worker that finishes it in the owner's place. */
  readonly retentionMs?: number
  /** How long after its lease an owner may still answer before anybody looks. */
  readonly graceMs?: number
}

/** The ids of the keys that a process has, the current one first. `reply` is empty without encryption. */
export interface KeyIds {
  readonly fingerprint: readonly string[]
  readonly reply: readonly string[]
  /**
   * A digest that only the bytes of this key have, so that a store which outlives the process notices other bytes under the same id.
   * Without it only the ids are compared.
   */
  readonly digestOf?: (purpose: KeyPurpose, keyId: string) => string
  /** Before the keys are compared, the store gives the process the secret that it keeps for those that were given none. */
  readonly made?: MadeSecret
}

/** A secret that onlyonce has made, and its id. */
export interface MadeKey {
  readonly keyId: string
  readonly bytes: Buffer
}

export interface MadeSecret {
  /** Kept where none is kept yet. Null where the process has a secret of its own. */
  readonly candidate: MadeKey | null
  /** Is given what is kept. `lasts`: it outlives the process. */
  readonly take: (kept: MadeKey, where: { readonly lasts: boolean }) => void
}

/** Proof of ownership: an attempt with an older fence owns nothing any more. */
export interface Owned {
  readonly id: RecordId
  readonly fence: number
  readonly attemptId: string
  /** Where the store has put the record when it was last written; a hint that may be out of date. */
  readonly place?: string | undefined
}

/** One attempt to do work and complete its record in one commit. */
export interface TransactionAttempt {
  readonly id: RecordId
  readonly claimant: Claimant
  /** What was seen when it was decided to run: nothing, or a record that may run again. */
  readonly previous: OnceRecord | null
  readonly retentionMs: number
  readonly isolation: Isolation | null
  /** How long this attempt may take. */
  readonly timeMaxMs: number
  /** Take a lock first, so that duplicates elsewhere are told `busy` before they run anything. */
  readonly exclusive: boolean
  /** Work that sends no statement on its `tx` ends as `endedInside`, with `transaction_unused`, and completes nothing. */
  readonly strictTx: boolean
}

export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

/** How one attempt of a transaction ended. Only `in_doubt` leaves a question open. */
export type TransactionEnd<Written = Reply> =
  | {
      readonly end: 'committed'
      readonly reply: Written
      readonly place?: string | undefined
      /** The work sent no statement on its `tx`. Left out by a store that cannot tell. */
      readonly unused?: boolean
    }
  /** Another record is in the way; everything was rolled back. Look again. */
  | { readonly end: 'conflict' }
  /** Another transaction with this key is open and did not end in time; everything was rolled back. */
  | { readonly end: 'busy' }
  /**
   * The work threw; everything was rolled back. `trouble` says that the store itself was not there for the work, also where the work
   * has made another error of that. `meant` is false where a statement could not be run at all: the work has said nothing by that, and may
   * well go on another time. `wentOn`: the work did not throw at all. One of its statements had failed, which aborts a transaction in
   * the database, and the work went on as if it had not.
   */
  | {
      readonly end: 'failed'
      readonly error: unknown
      readonly trouble?: OnlyonceError
      readonly meant?: false
      readonly wentOn?: true
    }
  /** The work ended its transaction by itself, or used none of it: what it did may stand without a record. */
  | { readonly end: 'ended_inside'; readonly error: OnlyonceError }
  /** Collided with others or lost its connection before COMMIT was sent: rolled back, may run again. */
  | { readonly end: 'rerun'; readonly error: unknown }
  /** COMMIT was sent and its answer never came. */
  | { readonly end: 'in_doubt'; readonly reply: Written; readonly error: unknown }

/** How a claim inside a transaction of the caller's ended. */
export type WithinEnd =
  | { readonly end: 'completed'; readonly reply: Reply }
  | { readonly end: 'decided'; readonly decision: Exclude<Decision, Run> }
  | { readonly end: 'busy' }

/** Which finished records are to go, and how many at once. */
export interface ReapRequest {
  /** `delete` removes the record and its history; `expire` keeps the row and clears what it says. */
  readonly mode: 'delete' | 'expire'
  readonly batchMax: number
  /** What changed more recently stays, also after its retention: a process may still ask what became of it. */
  readonly keptMinMs: number
}

export interface Reaped {
  readonly count: number
  /** More were there than fit into the batch. */
  readonly more: boolean
}

/**
 * Where records live. Small on purpose: the rules are in `record/`, the policy is in `protect/`; a store
 * makes single steps durable and tells the truth about them. `storeConformance` in `onlyonce/testing` is the
 * contract as tests.
 *
 * Every method that writes is safe to repeat with the same attempt id, so that an answer lost on the way
 * does no harm. A method that cannot reach the database, or gets no answer, throws `store_unavailable`: it may have been done.
 * Any other error of the table means that it was not.
 */
export interface Store<Tx> {
  /** Events, jobs and messages, where the store is a database that can hold them. */
  readonly outbox?: OutboxStore

  /**
   * Checks or installs what the store needs, and last whether this process has every key that a live record
   * names: `key_ring_incomplete` where it has not. Called once before anything else; may be called again.
   */
  start(keys: KeyIds): Promise<void>

  /** Reads one committed record from the primary. */
  look(id: RecordId): Promise<Seen | null>

  /** The attempts that were superseded, oldest first; at most the newest hundred. */
  history(id: RecordId): Promise<readonly Attempt[]>

  /** Claims a record in a commit of its own. The insert decides; nothing is checked first. */
  claim(request: ClaimRequest): Promise<Decision>

  /**
   * Ends an attempt. Each throws `lease_lost` and changes nothing when the fence is old. The owner's own word also ends a
   * record that is unknown, or was parked by a worker: see `mayAnswer`. One that an operator has parked, or that was
   * settled, it does not change.
   */
  complete(owned: Owned, reply: Reply, retentionMs: number): Promise<void>
  /** `effects_possible`: an earlier attempt may have had effects, and the record keeps that: see `mayHideEffects`. */
  release(owned: Owned, failure: Failure, retentionMs: number, effectsPossible?: boolean): Promise<void>
  /**
   * Removes the record of an attempt that did nothing, so that its key is unused again. Only one in progress that the attempt has
   * made itself, under the first fence; gives false, and changes nothing, where the record is another one. Also true where
   * the attempt has left no trace any more: an answer that was lost does no harm. See `mayForget`.
   */
  forget(owned: Owned): Promise<boolean>
  /** `lookInMs`: when a worker is to look what became of it; at once where nothing is said. */
  doubt(owned: Owned, failure: Failure, lookInMs?: number): Promise<void>

  /**
   * A sign of life: the lease is counted from now. An owner that was given up meanwhile has its record back, on the same
   * terms; not by a lease of 0, which only ends one. Throws `lease_lost` when the fence is old.
   */
  extend(owned: Owned, leaseMs: number): Promise<void>

  /** Runs `work` and completes the record in one transaction and one commit. */
  transact(
    attempt: TransactionAttempt,
    work: (tx: Tx) => Promise<Reply>,
    crashPoint: CrashPoint,
  ): Promise<TransactionEnd>

  /**
   * Finds out whether an attempt that is in doubt committed. When it answers `rolled_back`, it has also made
   * sure that the attempt can never commit later.
   */
  settle(attempt: TransactionAttempt): Promise<'committed' | 'rolled_back'>

  /**
   * Leaves a retryable record after a rollback, so that the key keeps its fingerprint, and what the record before may hide. Never
   * touches a row that another attempt wrote; says whether it wrote one.
   */
  leaveRetryable(attempt: TransactionAttempt, failure: Failure): Promise<boolean>

  /**
   * Counts unfinished records of all accounts whose last attempt began at least this long ago, by the store's
   * clock. Locks nothing.
   */
  stuck(olderThanMs: number): Promise<Stuck>

  /**
   * For how long after its last change a record may be the verdict on a COMMIT whose answer was lost. No reaper may remove
   * it before.
   */
  readonly doubtMaxMs: number

  /**
   * Removes finished records whose retention has ended by the store's clock, a bounded number of them; never one that is
   * in progress, unknown or parked, and none that is taken in the same moment. Removes evidence after `evidenceKeptMs`, too,
   * where the store keeps any, but none that a record waits for.
   */
  reap(request: ReapRequest): Promise<Reaped>

  /**
   * Claims and completes inside the caller's transaction, which it never aborts. `work` is told what was claimed;
   * when it throws, the claim is undone.
   */
  within(
    tx: Queryable,
    request: ClaimRequest,
    retentionMs: number,
    work: (tx: Queryable, claimed: Run) => Promise<Reply>,
  ): Promise<WithinEnd>

  /** What those need who look after handlers, and transactions in doubt, whose owner gave no outcome. */
  readonly recovery: RecoveryStore

  /** Durable operations; a store may go without. */
  readonly operations?: OperationStore<Tx>
  /** Locks on anything, where the store has them. */
  readonly locks?: LockStore | undefined

  /** Endpoints of webhooks and deliveries to them, where the store has them. */
  readonly webhooks?: WebhookStore | undefined

  /** What operators need, where the store has it. */
  readonly decisions?: DecisionStore | undefined

  close(): Promise<void>
}
