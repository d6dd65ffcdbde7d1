import type { Deadline } from '../core/retry.ts'
import type { Running } from '../protect/running.ts'
import type { Claimant, Failure, RecordId, State } from '../record/index.ts'
import type { CrashPoint, Store } from '../store/contract.ts'
import type { OperationHead, OperationStore, Resumed } from '../store/operations.ts'

/** What an attempt at an operation needs of its surroundings. */
export interface OperationHouse<Tx> {
  readonly store: Store<Tx>
  readonly operations: OperationStore<Tx>
  readonly running: Running<Tx>
  readonly crashPoint: CrashPoint
  readonly onLeaseLost: () => void
  readonly onParked: (id: RecordId, failure: Failure) => void
  /** When to look at what is in doubt, one entry for each look. */
  readonly scheduleMs: readonly number[]
}

/** One attempt, before it owns anything. */
export interface OperationAttempt {
  readonly id: RecordId
  readonly claimant: Claimant
  readonly head: OperationHead
  readonly leaseMs: number
  readonly inProgressMaxMs: number
  /** Of its steps. */
  readonly deadline: Deadline
  /** After this no key is claimed and no call is begun; it is only looked, and what is found is finished. */
  readonly beginsUntil: Deadline
  /** What was there already, and is ours now; null for a new key. */
  readonly resumed: Resumed | null
  /** The state that it was found in. */
  readonly from: State | 'none'
  /** An earlier attempt may have had effects that are no steps: see `mayHideEffects`. */
  readonly effectsPossible: boolean
}
