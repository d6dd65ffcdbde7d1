/** What a store keeps for those who look after records whose owner gave no outcome. Operations have a part of their own. */
import type { Failure, Kind, LookEnd, RecordId } from '../record/index.ts'

/** A record that waits for a worker or an operator, as it was seen. */
export interface Unattended {
  readonly id: RecordId
  readonly fence: number
  readonly attemptId: string
  readonly state: 'in_progress' | 'unknown'
  readonly kind: Kind
  /** How often a look was taken. */
  readonly looks: number
  /** Why it is unknown; null while it is in progress. */
  readonly failure: Failure | null
}

/** The right to look, for a while: what is written under it names its number. */
export type Look = Unattended

export interface UnattendedRequest {
  /** How long after its lease an owner may still answer. */
  readonly graceMs: number
  /** The operations that the asker has a `recover` for. Others leave records that name one alone. */
  readonly operations: readonly string[]
  /** A record whose `recover` no process has had for so long is for everybody. */
  readonly orphanedMs: number
  readonly limit: number
}

/** Every write names what was seen, so that of two processes one writes, and the other is told. */
export interface RecoveryStore {
  /**
   * Records of handlers and transactions, of all accounts, whose lease and grace are over or whose look is due; those that
   * have waited longest come first. Locks nothing.
   */
  unattended(request: UnattendedRequest): Promise<readonly Unattended[]>

  /**
   * The owner of a record in progress vanished: it is unknown from now on and due, or retryable where it may run again.
   * Null when its owner, or another, came first.
   */
  vanish(seen: Unattended, graceMs: number, retentionMs: number): Promise<'unknown' | 'retryable' | null>

  /** Takes a look that is due; the next is due after `holdMs`, in case this one is never heard of again. Null: another has it. */
  takeLook(seen: Unattended, holdMs: number): Promise<Look | null>

  /**
   * Writes what a look came to, under its number. `retention_ms` counts where the claim left none. False, and nothing is
   * changed, when the owner answered, an operator decided or another looked meanwhile.
   */
  endLook(look: Look, end: LookEnd, retentionMs: number): Promise<boolean>
}
