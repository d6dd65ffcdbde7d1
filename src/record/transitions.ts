/**
 * The life of a record as pure functions: no clock, no I/O. `now` is the store's clock. Each function
 * returns the next record, or says in one word why there is none; stores obey them, and the database repeats
 * the shape of every state in its constraints.
 */

import { LIMITS } from '../core/limits.ts'
import { ERASED_KEY_ID, type Fingerprint } from '../fingerprint/index.ts'
import { afterLook, afterOwner } from './come-back.ts'
import { common } from './common.ts'
import { type Answerable, mayFollow, mayHideEffects } from './owning.ts'
import type {
  Completed,
  Expired,
  Failure,
  InProgress,
  Kind,
  OnceRecord,
  Parked,
  Reply,
  Retryable,
  State,
  Unknown,
} from './record.ts'
import { mayRunAgain, unfinished } from './unfinished.ts'
import { ERASED_SCHEMA } from './value.ts'

/** Every edge of the state machine; `none` is a key that was never seen, or was deleted. */
export const EDGES: Readonly<Record<State | 'none', readonly (State | 'none')[]>> = {
  none: ['in_progress', 'completed', 'retryable'],
  in_progress: ['none', 'in_progress', 'completed', 'retryable', 'unknown', 'parked'],
  completed: ['completed', 'expired'],
  retryable: ['in_progress', 'completed', 'retryable', 'expired'],
  unknown: ['in_progress', 'retryable', 'completed', 'parked'],
  parked: ['in_progress', 'unknown', 'retryable', 'completed'],
  expired: ['in_progress', 'completed', 'retryable'],
}

/** Who takes a record, and under which name. */
export interface Claimant {
  readonly kind: Kind
  readonly attemptId: string
  readonly owner: string
  readonly fingerprint: Fingerprint
  readonly trace: string | null
}

/**
 * What the claimant would do with a record whose lease ran out: an operation resumes, a plain handler is in doubt. It resumes only what
 * was begun as the same (`mayFollow`).
 */
export type Takeover = 'resume' | 'doubt'

/** The caller owns the record now. `from` is what was there before: a retry is told from a first attempt by it. */
export interface Run {
  readonly kind: 'run'
  readonly record: InProgress
  readonly from: State | 'none'
  /** An earlier attempt may have had effects, though the record was retryable: see `mayHideEffects`. */
  readonly effectsPossible: boolean
}

/** What a caller who brings a key is told. */
export type Decision =
  | Run
  | {
      readonly kind: 'vanished'
      readonly record: Unknown
      readonly retryAfterMs: number
      readonly due: boolean
    }
  | { readonly kind: 'replay'; readonly record: Completed }
  | { readonly kind: 'in_progress'; readonly retryAfterMs: number }
  | { readonly kind: 'key_reused' }
  /** `due`: the caller may look what became of it. */
  | {
      readonly kind: 'unknown'
      readonly record: Unknown
      readonly retryAfterMs: number
      readonly due: boolean
    }
  | { readonly kind: 'parked'; readonly record: Parked }

/** Takes ownership: the fence rises by one over that of the record before. */
export function reserve(
  previous: OnceRecord | null,
  claimant: Claimant,
  leaseMs: number,
  now: number,
): InProgress {
  return {
    state: 'in_progress',
    kind: claimant.kind,
    fence: (previous?.fence ?? 0) + 1,
    attemptId: claimant.attemptId,
    owner: claimant.owner,
    fingerprint: claimant.fingerprint,
    trace: claimant.trace,
    decided: false,
    createdAt: previous?.createdAt ?? now,
    attemptedAt: now,
    changedAt: now,
    leaseUntil: now + leaseMs,
  }
}

/**
 * Decides what a claim of a record comes to.
 *
 * `sameRequest` tells whether the fingerprints agree; it is asked first in every state that can be seen, so
 * that a reused key never learns anything about the request that holds it.
 */
export function decide(
  record: OnceRecord | null,
  claim: {
    claimant: Claimant
    sameRequest: boolean
    leaseMs: number
    takeover: Takeover
    /** How long after its lease an owner may still answer before anybody looks. */
    graceMs?: number | undefined
  },
  now: number,
): Decision {
  if (record === null || record.state === 'expired') {
    return run(record, claim, now)
  }
  if (!claim.sameRequest) return { kind: 'key_reused' }
  switch (record.state) {
    case 'completed':
      return { kind: 'replay', record }
    case 'retryable':
      return mayRunAgain(record, claim.claimant.kind)
        ? run(record, claim, now)
        : { kind: 'unknown', ...inDoubt(unfinished(record), now), due: false }
    case 'in_progress':
      if (record.leaseUntil > now) {
        return { kind: 'in_progress', retryAfterMs: afterOwner(record, now) }
      }
      return claim.takeover === 'resume' && mayFollow(record.kind, claim.claimant.kind)
        ? run(record, claim, now)
        : { kind: 'vanished', ...inDoubt(vanish(record, claim.graceMs ?? LIMITS.graceMs, now), now) }
    case 'unknown':
      return { kind: 'unknown', ...inDoubt(record, now) }
    case 'parked':
      return { kind: 'parked', record }
    default:
      return unreachable(record)
  }
}

function inDoubt(record: Unknown, now: number) {
  return { record, retryAfterMs: afterLook(record, now), due: isDue(record, now) }
}

/** The owner said nothing until its lease was over. It has the grace to come back; then a worker or a retry looks. */
export function vanish(record: InProgress, graceMs: number, now: number): Unknown {
  return doubt(record, OWNER_VANISHED, now, record.leaseUntil + graceMs)
}

/** Whether a worker or a retry may look what became of a record. An operation is looked at by its workers. */
export function isDue(record: Unknown, now: number): boolean {
  return record.kind !== 'operation' && (record.lookAt ?? now) <= now
}

function run(
  record: OnceRecord | null,
  claim: { readonly claimant: Claimant; readonly leaseMs: number },
  now: number,
): Run {
  const { claimant, leaseMs } = claim
  const effectsPossible = mayHideEffects(record)
  return {
    kind: 'run',
    record: reserve(record, claimant, leaseMs, now),
    from: record?.state ?? 'none',
    effectsPossible,
  }
}

/**
 * A claim that turns out to have been made already: by an earlier try of the same attempt, whose answer was lost.
 * What was there before can only be told by the fence then, and not what it may hide.
 */
export function ownRun(record: InProgress): Run {
  const first = record.fence === 1
  return { kind: 'run', record, from: first ? 'none' : 'retryable', effectsPossible: !first }
}

export const OWNER_VANISHED: Failure = {
  code: 'owner_vanished',
  message:
    'The lease ran out and the owner had stored no outcome: it crashed, stalled or could not reach the database.',
}

/** The owner is done; retention starts now. */
export function complete(record: Answerable, reply: Reply, retentionMs: number, now: number): Completed {
  return { ...common(record), state: 'completed', reply, changedAt: now, expiresAt: now + retentionMs }
}

/** It is proved that nothing happened: the same request may run again. */
export function release(
  record: Answerable,
  failure: Failure,
  retentionMs: number,
  now: number,
  effectsPossible = false,
): Retryable {
  const kind = effectsPossible ? 'handler_rerunnable' : record.kind
  return {
    ...common(record),
    kind,
    state: 'retryable',
    failure,
    changedAt: now,
    expiresAt: now + retentionMs,
  }
}

/** It is not known whether it happened: that has to be found out, the first time at `lookAt`. */
export function doubt(record: InProgress, failure: Failure, now: number, lookAt: number = now): Unknown {
  return { ...common(record), state: 'unknown', failure, changedAt: now, lookAt, looks: 0 }
}

/** The owner is alive, also where it was given up meanwhile. The fence stays, the lease is counted from now. */
export function extend(record: Answerable, leaseMs: number, now: number): InProgress {
  return { ...common(record), state: 'in_progress', leaseUntil: now + leaseMs }
}

/** It was found out that nothing happened, or an operator allows a retry. */
export function settleAsNotExecuted(record: Unknown | Parked, retentionMs: number, now: number): Retryable {
  return {
    ...common(record),
    state: 'retryable',
    failure: record.failure,
    decided: true,
    changedAt: now,
    expiresAt: now + retentionMs,
  }
}

/** It was found out that it happened: a new owner takes the record and runs the rest. */
export function settleAsExecuted(
  record: Unknown,
  claimant: Claimant,
  leaseMs: number,
  now: number,
): InProgress {
  return reserve(record, claimant, leaseMs, now)
}

/** An operator gives the reply. */
export function settleWithReply(
  record: Unknown | Parked,
  reply: Reply,
  retentionMs: number,
  now: number,
): Completed {
  return complete({ ...record, decided: true }, reply, retentionMs, now)
}

/** Others need what it holds: it is proved that nothing happened, and from now on nothing ever will under this key. */
export function giveUp(record: Retryable, reply: Reply, retentionMs: number, now: number): Completed {
  const decided = { ...common(record), decided: true }
  return { ...decided, state: 'completed', reply, changedAt: now, expiresAt: now + retentionMs }
}

/** No more automatic attempts: an operator decides. An owner parks what it finds that no attempt can go on with. */
export function park(record: Unknown | InProgress, failure: Failure, now: number): Parked {
  return { ...common(record), state: 'parked', failure, changedAt: now }
}

/** An operator parks: the owner's word counts no more either. */
export function parkByOperator(record: Unknown | InProgress, failure: Failure, now: number): Parked {
  return { ...park(record, failure, now), decided: true }
}

export function unpark(record: Parked, now: number): Unknown {
  const { failure } = record
  return {
    ...common(record),
    decided: false,
    state: 'unknown',
    failure,
    changedAt: now,
    lookAt: now,
    looks: 0,
  }
}

/** Only finished records expire; unfinished ones are never forgotten. */
export function expire(record: Completed | Retryable, now: number): Expired | null {
  if (record.expiresAt > now) return null
  return { ...common(record), state: 'expired', changedAt: now, expiresAt: record.expiresAt }
}

/**
 * Nothing of the request or its outcome is left, and nothing runs under its key any more. Only what is finished: of any other record it has to
 * be found out first what became of it. The attempt's id stays, as the proof for one whose COMMIT was not answered.
 */
export function erase(record: Completed | Retryable | Expired, now: number): Completed {
  return {
    ...common(record),
    state: 'completed',
    fingerprint: { keyId: ERASED_KEY_ID, digest: Buffer.alloc(0) },
    trace: null,
    owner: 'erased',
    decided: true,
    reply: { status: 410, headers: [], body: null, schema: ERASED_SCHEMA, sealedBy: null },
    changedAt: now,
    expiresAt: ERASED_UNTIL,
  }
}

/** The end of the year 9999: no retention ends a tombstone. */
const ERASED_UNTIL = 253_402_214_400_000

function unreachable(value: never): never {
  throw new Error(`unreachable state: ${JSON.stringify(value)}`)
}
