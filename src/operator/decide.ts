import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type GivenReply, replyOf } from '../protect/given-reply.ts'
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
import type { DecideRequest, SeenWithin } from '../store/decisions.ts'

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
export type GivingUp = Signature & { readonly reply: GivenReply; readonly retentionMs?: number }

export interface GivenUp {
  readonly givenUp: boolean
  /** What it was before. Only what is retryable is given up. */
  readonly state: State | 'none'
}

/**
 * It happened, and this is the reply; or it is proved that it did not, and a retry may run.
 *
 * A retry of an operation makes the call that was in doubt with the same key, and a processor that remembers its answer gives it
 * again, a failure too. `earlierCallIsVoid` gives the call a new key: with it you say that the earlier one has not been carried
 * out and never will be. If it shows up all the same, it counts, and no other call is made; where one was made already, an
 * alarm is raised.
 */
export type Resolution = Signature & { readonly retentionMs?: number } & (
    | { readonly reply: GivenReply; readonly allowRetry?: never; readonly earlierCallIsVoid?: never }
    | { readonly allowRetry: true; readonly earlierCallIsVoid?: true; readonly reply?: never }
  )

/** What the functions of `record/` make of a decision, for the store to take as one step. */
export type Step = Pick<DecideRequest, 'from' | 'to' | 'retentionMs' | 'action'> &
  Partial<Pick<DecideRequest, 'voidCall'>>

export function resolutionStep(seen: SeenWithin | null, given: Resolution, retentionMs: number): Step {
  const from = decidable(seen, ['in_progress', 'unknown', 'parked'])
  const { now } = seen!
  const open = inDoubt(from, now)
  if (given.reply === undefined) {
    const to = settleAsNotExecuted(open, retentionMs, now)
    if (given.earlierCallIsVoid !== true) return { from, to, retentionMs, action: 'allow_retry' }
    return { from, to, retentionMs, action: 'void_call', voidCall: callInDoubt(seen!) }
  }
  const to = settleWithReply(open, replyOf(given.reply), retentionMs, now)
  return { from, to, retentionMs, action: 'resolve' }
}

/** The call that can be declared void: the one that the record waits for. */
function callInDoubt({ record, waitsFor, voidCalls }: SeenWithin): string {
  const why = (detail: string) => new OnlyonceError('not_resolvable', { detail })
  if (waitsFor === null) throw why(record.kind === 'operation' ? NO_CALL : NO_OPERATION)
  if (voidCalls.includes(waitsFor))
    throw why('The call that it waits for is declared void already, and the other side does not say so yet.')
  if (voidCalls.length >= LIMITS.voidCallsMax)
    throw why(`${voidCalls.length} of its calls are void already: settle it with a reply.`)
  return waitsFor
}

const NO_CALL =
  'No call of it is in doubt, so none can be void: the results of its calls are durable, or it does not know which call it is. A look finds that out anew: unpark it. Where it is parked again without a call in doubt (inDoubt of show is null), its code has to be repaired, or it is settled with a reply.'
export const NO_OPERATION =
  'It is no operation, so it has no calls. Settle it with a reply, or with allowRetry alone.'

/** Null where it is not retryable: others may have done something, or may be about to. */
export function givingUpStep(seen: Seen | null, given: GivingUp, retentionMs: number): Step | null {
  const from = seen?.record
  if (from?.state !== 'retryable') return null
  const to = giveUp(from, replyOf(given.reply), retentionMs, seen!.now)
  return { from, to, retentionMs, action: 'give_up' }
}

/** Why it is unknown stays what it was, and is what callers are told; why it was parked is in the audit alone. */
export function parkingStep(seen: Seen | null): Step {
  const from = decidable(seen, ['in_progress', 'unknown']) as Unknown | InProgress
  const { now } = seen!
  const { failure } = inDoubt(from, now)
  return { from, to: parkByOperator(from, failure, now), retentionMs: null, action: 'park' }
}

export function unparkingStep(seen: Seen | null): Step {
  const from = decidable(seen, ['parked']) as Parked
  return { from, to: unpark(from, seen!.now), retentionMs: null, action: 'unpark' }
}

export type Open = Unknown | Parked | InProgress

/** What is in progress is its owner's until the lease is over; then no other need come first. */
export function decidable(seen: Seen | null, states: readonly State[]): Open {
  const record = seen?.record ?? null
  const owned = record?.state === 'in_progress' && record.leaseUntil > seen!.now
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
      return 'It is retryable: the next request with this key runs. To end it for good, use giveUp.'
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
