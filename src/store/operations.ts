/** What a store keeps of durable operations, beside their records. */
import type { Failure, InProgress, RecordId, Reply, State } from '../record/index.ts'
import type { Claimant } from '../record/transitions.ts'
import type { Sealed } from '../seal/index.ts'
import type { CrashPoint, Isolation, Owned, TransactionEnd } from './contract.ts'

/** What is written down of an operation before anything else, so that any process can resume it. */
export interface OperationHead {
  readonly version: string
  readonly input: Sealed
  /** From now, by the store's clock; null where the caller gave no deadline. */
  readonly deadlineMs: number | null
  readonly retentionMs: number
}

/** The steps whose results are durable. */
export interface Points {
  readonly count: number
  /** The recovery point: the name of the last of them. */
  readonly last: string
  readonly progress: Sealed
}

/** What one commit of an operation leaves: more steps, or its end. */
export type Written =
  | { readonly state: 'in_progress'; readonly points: Points }
  | { readonly state: 'completed'; readonly reply: Reply; readonly count: number; readonly last: string }

/** The first commit of an operation whose key is new. */
export interface Beginning {
  readonly id: RecordId
  readonly claimant: Claimant
  readonly head: OperationHead
  readonly leaseMs: number
  readonly retentionMs: number
}

/** `conflict`: a record of another's is there. `busy`: its transaction is open, and did not end in time. */
export type Claimed = 'claimed' | 'conflict' | 'busy'

/** An atomic step: the bounds of its transaction. */
export interface StepBounds {
  readonly isolation: Isolation
  readonly timeMaxMs: number
  readonly onLock?: () => Owned['place']
}

/** A record that is to be taken over, as it was seen. */
export interface Takable {
  readonly id: RecordId
  readonly fence: number
  readonly state: State
}

/** Code that a process has. */
export interface Known {
  readonly name: string
  readonly version: string
}

export interface TakeOver {
  readonly seen: Takable
  /** A worker goes on with the fingerprint that is there. */
  readonly claimant: Omit<Claimant, 'fingerprint'> & Partial<Pick<Claimant, 'fingerprint'>>
  readonly leaseMs: number
  /** For records that know no head yet, or start over; null for workers. */
  readonly head: OperationHead | null
  /** The versions of the operation that the taker has the code of. */
  readonly versions: readonly string[]
  /** The keys that it can open with. */
  readonly keyIds?: readonly string[]
}

/** An operation in the hands of a new owner, with all that is durable of it. Times are ages, by the store's clock. */
export interface Resumed {
  readonly record: InProgress
  readonly version: string
  readonly input: Sealed
  readonly progress: Sealed | null
  readonly count: number
  /** Since the last step became durable, or else since the record was made. */
  readonly pointAgeMs: number
  /** Since the last moment at which an earlier owner may have sent a call; null where there was none. */
  readonly sentAgeMs: number | null
  /** Until the deadline of the request; negative when it is past, null where there is none. */
  readonly deadlineInMs: number | null
  readonly retentionMs: number
  /** How often it was looked at since its outcome is in doubt. */
  readonly looks: number
  /** The key of the call that was in doubt before; null where it was left otherwise. */
  readonly waitedFor: string | null
  /** The step of that call. */
  readonly waitedStep: string | null
  /** The keys of its calls that an operator has declared void, in this order. */
  readonly voidCalls: readonly string[]
  /** An earlier attempt may have had effects that are no steps: see `mayHideEffects`. The record keeps that through all its owners. */
  readonly effectsPossible: boolean
  /** How many owners in a row have left it without a word, up to this one. One that ended it, well or in doubt, begins a new row. */
  readonly vanished: number
  /** Input and progress could not be opened, and are empty here. The record is in new hands all the same. */
  readonly unreadable?: boolean
  readonly place: Owned['place']
}

/** What an owner that stops without an end leaves for those who go on, or decide. */
export interface Waiting {
  /** The key of the call whose outcome is in doubt, so that evidence about it finds the record. */
  readonly waitsFor: string | null
  /** The step of that call, for operators. */
  readonly waitsStep: string | null
  /** The other side remembers the calls for so long: a reply that an operator gives is kept no shorter. */
  readonly retentionMs: number
  /** How often it was looked at since the doubt began. */
  readonly looks: number
}

/** When a worker is to look at a record again that is in doubt. */
export interface NextLook extends Waiting {
  /** Null: no worker does. */
  readonly inMs: number | null
}

/**
 * What durable operations need of a store. Every write is safe to repeat with the same attempt id; every write of
 * an owner throws, or ends with, `lease_lost` when its fence is old.
 */
export interface OperationStore<Tx> {
  /** Runs the first step of a new record: work, record and result in one commit. `conflict` where a record is there. */
  begin(
    beginning: Beginning,
    bounds: StepBounds,
    work: (tx: Tx) => Promise<Written>,
    crashPoint: CrashPoint,
  ): Promise<TransactionEnd<Written>>

  /** Claims a new record in a commit of its own, before a call. */
  claim(beginning: Beginning): Promise<Claimed>

  /**
   * Runs a later step. Its first statement checks and locks the owner's fence. `onLock` is called when that is sent, which
   * may be long after the step began, and tells where the record is by then.
   */
  step(
    owned: Owned,
    bounds: StepBounds & Pick<Beginning, 'leaseMs' | 'retentionMs'>,
    work: (tx: Tx) => Promise<Written>,
    crashPoint: CrashPoint,
  ): Promise<TransactionEnd<Written>>

  /** Whether a step whose COMMIT was not answered took effect. Throws `lease_lost` where the owner cannot go on with it. */
  settleStep(owned: Owned, written: Written): Promise<'committed' | 'rolled_back'>

  /** Makes results durable, or the end, in a commit of its own. Gives the record's new place, where it is known. */
  write(
    owned: Owned,
    written: Written,
    bounds: Pick<Beginning, 'leaseMs' | 'retentionMs'>,
  ): Promise<Owned['place']>

  /**
   * Takes a record over by the fence that was seen. Null when another came first. A taker that lacks the code or the key to go
   * on with it changes nothing: `operation_unknown`, `seal_key_unknown`.
   */
  takeOver(request: TakeOver): Promise<Resumed | null>

  /** It is not known whether a call took effect. */
  doubt(owned: Owned, failure: Failure, next: NextLook): Promise<void>

  /** A worker or an operator that ends the record in the owner's place keeps it no shorter than this. */
  keepFor(owned: Owned, retentionMs: number): Promise<void>

  /** No worker can go on: an operator decides, and may have to know which call is in doubt. */
  park(owned: Owned, failure: Failure, waiting: Waiting): Promise<void>

  /** Operations whose lease ran out at least so long ago, of all accounts; those that were begun first come first. */
  abandoned(known: readonly Known[], graceMs: number, limit: number): Promise<readonly Takable[]>

  /** Operations in doubt that are to be looked at by now, of all accounts. */
  due(known: readonly Known[], limit: number): Promise<readonly Takable[]>

  /**
   * Of the operations in doubt, and of those whose owner vanished, the one that has waited longest for a worker, of all accounts, if it is
   * overdue by so much. Operations named in `except` are left out.
   */
  longestWaiting(overdueMs: number, except: readonly string[]): Promise<readonly Takable[]>

  /**
   * Keeps what a webhook or an operator has told about a call, often before its answer came, and lets a worker look at once
   * at the record that waits for it. The first word stays. Signed evidence that is kept is noted in the audit of that record, both or neither.
   */
  addEvidence(account: string, callKey: string, result: Sealed, signed: Signed | null): Promise<EvidenceEnd>
  /** The results of the steps of an unfinished operation; null where there are none. Changes nothing. */
  progress(id: RecordId): Promise<Sealed | null>
  /** What was told about a call in the present life of its record. */
  evidence(id: RecordId, callKey: string): Promise<ToldEvidence | null>
  /** What was told then is not evidence any more: it is not read again, and the next word takes its place. */
  refuseEvidence(id: RecordId, callKey: string, receivedAt: string): Promise<void>
  /** All of it and its entry in the audit, or nothing. False when the record is not any more what was seen of it, or a call that follows is in doubt. */
  discard(request: DiscardRequest): Promise<boolean>
  /** What operators have discarded of a record, the oldest first; at most the newest hundred. */
  discarded(id: RecordId): Promise<readonly DiscardedResult[]>
}

/** The result of the last durable step, a call, is discarded: the record is parked, with that call in doubt again. */
export interface DiscardRequest extends Signed {
  readonly id: RecordId
  /** As it was seen. One in progress only after its lease, which the store asks once more. */
  readonly seen: {
    readonly fence: number
    readonly attemptId: string
    readonly state: State
    readonly count: number
  }
  /** What stays durable. */
  readonly points: Points
  readonly step: string
  /** The key of the call that is in doubt again. What was told about it counts no more. */
  readonly callKey: string
  readonly failure: Failure
  readonly discarded: Sealed
}

/** A result that was discarded; null in place of bytes that this process cannot open. */
export interface DiscardedResult {
  readonly seq: number
  readonly callKey: string
  readonly bytes: Buffer | null
  readonly sealedBy: string | null
}

/** The person who tells evidence, and why. */
export interface Signed {
  readonly by: string
  readonly why: string
}

/** What became of evidence. */
export interface EvidenceEnd {
  /** False where earlier evidence about the call stands. */
  readonly kept: boolean
  /** Whether a record waits for this call. */
  readonly awaited: boolean
  /** The record of which an operator has declared this very call void. */
  readonly voidOf: RecordId | null
}

export interface ToldEvidence extends Sealed {
  /** As the store writes it: evidence that came later is another one. */
  readonly receivedAt: string
}
