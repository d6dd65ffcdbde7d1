import { OnlyonceError } from '../errors.ts'
import { checkName, maskCardNumbers } from '../key/index.ts'
import { isWellFormed } from '../key/parts.ts'
import { LIMITS } from '../limits.ts'
import {
  giveUp,
  type InProgress,
  type OnceRecord,
  type Parked,
  parkByOperator,
  type State,
  settleAsNotExecuted,
  settleWithReply,
  type Unknown,
  unpark,
  vanish,
} from '../record/index.ts'
import type { Queryable, Seen } from '../store/contract.ts'
import type { DecideRequest } from '../store/decisions.ts'
import { type GivenReply, replyOf } from './reply.ts'

/** Who decides, and why: kept for ever beside what was decided. */
export interface Signature {
  readonly by: string
  readonly why: string
  /** The fence that the decision was made upon, as `list` or `show` told it: refused if it is another by now. */
  readonly fence?: number
  /**
   * A transaction of your own that the decision joins, so that what follows from it is one commit with it. It stands once
   * you have committed.
   */
  readonly tx?: Queryable
}

/** What everybody who comes back to a request that was given up is told. */
export type GivingUp = Signature & { readonly reply: GivenReply; readonly retention_ms?: number }

export interface GivenUp {
  readonly given_up: boolean
  /** What it was before. Only what is retryable is given up. */
  readonly state: State | 'none'
}

/** It happened, and this is the reply; or it is proved that it did not, and a retry may run. */
export type Resolution = Signature & { readonly retention_ms?: number } & (
    | { readonly reply: GivenReply; readonly allow_retry?: never }
    | { readonly allow_retry: true; readonly reply?: never }
  )

/** What the functions of `record/` make of a decision, for the store to take as one step. */
export type Step = Pick<DecideRequest, 'from' | 'to' | 'retention_ms' | 'action'>

export function resolutionStep(seen: Seen | null, given: Resolution, retention_ms: number): Step {
  const from = decidable(seen, ['in_progress', 'unknown', 'parked'])
  const { now } = seen!
  const open = inDoubt(from, now)
  if (given.reply === undefined) {
    const to = settleAsNotExecuted(open, retention_ms, now)
    return { from, to, retention_ms, action: 'allow_retry' }
  }
  const to = settleWithReply(open, replyOf(given.reply), retention_ms, now)
  return { from, to, retention_ms, action: 'resolve' }
}

/** Null where it is not retryable: others may have done something, or may be about to. */
export function givingUpStep(seen: Seen | null, given: GivingUp, retention_ms: number): Step | null {
  const from = seen?.record
  if (from?.state !== 'retryable') return null
  const to = giveUp(from, replyOf(given.reply), retention_ms, seen!.now)
  return { from, to, retention_ms, action: 'resolve' }
}

/** Why it is unknown stays what it was, and is what callers are told; why it was parked is in the audit alone. */
export function parkingStep(seen: Seen | null): Step {
  const from = decidable(seen, ['in_progress', 'unknown']) as Unknown | InProgress
  const { now } = seen!
  const { failure } = inDoubt(from, now)
  return { from, to: parkByOperator(from, failure, now), retention_ms: null, action: 'park' }
}

export function unparkingStep(seen: Seen | null): Step {
  const from = decidable(seen, ['parked']) as Parked
  return { from, to: unpark(from, seen!.now), retention_ms: null, action: 'unpark' }
}

type Open = Unknown | Parked | InProgress

/** What is in progress is its owner's until the lease is over; then nobody else need come first. */
function decidable(seen: Seen | null, states: readonly State[]): Open {
  const record = seen?.record ?? null
  const owned = record?.state === 'in_progress' && record.lease_until > seen!.now
  if (record !== null && states.includes(record.state) && !owned) return record as Open
  throw new OnlyonceError('not_resolvable', { detail: whyNot(record) })
}

/** An owner whose lease is over has vanished, also where no worker has found that yet. */
function inDoubt(record: Open, now: number): Unknown | Parked {
  return record.state === 'in_progress' ? vanish(record, 0, now) : record
}

function whyNot(record: OnceRecord | null): string {
  if (record === null) return 'There is no record with this key.'
  switch (record.state) {
    case 'in_progress':
      return 'It is in progress, and its lease has not run out. Wait until its owner ends it, or until the lease is over, and decide then.'
    case 'completed':
      return 'It is completed, and its reply is never changed.'
    case 'retryable':
      return 'It is retryable: the next request with this key runs.'
    case 'expired':
      return 'Its retention has ended: the next request with this key runs as a new one.'
    case 'unknown':
      return 'It is not parked.'
    case 'parked':
      return 'It is parked already.'
    default:
      return record satisfies never
  }
}

/** Both are shown to people who may not see card numbers. */
export function signatureOf({ by, why, fence }: Signature): Signature {
  const who = maskCardNumbers(checkName(by, 'decision_invalid'))
  if (typeof why !== 'string' || why.trim() === '') refuse('Say why.')
  // PostgreSQL's text holds neither.
  if (!isWellFormed(why) || why.includes('\0')) refuse('Its why holds what is not text.')
  const reason = maskCardNumbers(why)
  if (reason.length > LIMITS.why_length_max) refuse('Its why is too long.')
  if (fence !== undefined && !Number.isSafeInteger(fence)) refuse('Its fence is not a number.')
  return { by: who, why: reason, ...(fence === undefined ? {} : { fence }) }
}

function refuse(detail: string): never {
  throw new OnlyonceError('decision_invalid', { detail })
}
