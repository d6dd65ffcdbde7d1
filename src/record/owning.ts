/** Whose word about a record counts. */
import type { InProgress, Kind, OnceRecord, Parked, Unknown } from './record.ts'

/** True when a key belongs to no request: a request with any content runs. */
export function isFree(record: OnceRecord | null): boolean {
  return record === null || record.state === 'expired'
}

/** True when `fence` still owns the record: the condition of every write by an owner. */
export function owns(record: OnceRecord | null, fence: number): record is InProgress {
  return record !== null && record.state === 'in_progress' && record.fence === fence
}

/** A record that its owner may still answer. */
export type Answerable = InProgress | Unknown | Parked

/**
 * True when the owner's own word still counts: under its fence, and as long as no operator or `recover` has decided in its place. So an owner
 * that stalled for longer than its lease loses no good reply. Operations are taken over by a new fence instead.
 */
export function mayAnswer(record: OnceRecord | null, fence: number): record is Answerable {
  if (record === null || record.fence !== fence) return false
  switch (record.state) {
    case 'in_progress':
      return true
    case 'unknown':
    case 'parked':
      return record.kind !== 'operation' && !record.decided
    default:
      return false
  }
}

/**
 * True when the owner may remove the record: it is the first owner, it made the record itself, and it has not been given up. What an
 * earlier attempt has left is never removed, because that attempt may have had effects.
 */
export function mayForget(record: OnceRecord | null, fence: number): record is InProgress {
  return owns(record, fence) && record.fence === 1
}

/**
 * Whether an attempt at a record may have had effects, though it is retryable: a rerunnable handler that threw, or whose owner vanished,
 * may have done its work. The kind keeps that through later attempts that did nothing, of every protection. Durable steps are effects. What an
 * operator or `recover` has made retryable was in doubt before: their word lets the request run again, and is no proof of ours.
 */
export function mayHideEffects(record: OnceRecord | null): boolean {
  if (record === null || record.state === 'expired') return false
  return record.kind === 'handler_rerunnable' || record.hasSteps === true || record.decided
}

/**
 * Whether a claimant may go on where an owner vanished. The vanished attempt decides, not the code that comes after it: a deploy may have
 * made another kind of work of the same name, and what a plain handler did before it vanished is in no step that an operation could find.
 */
export function mayFollow(vanished: Kind, claimant: Kind): boolean {
  return vanished === claimant && (vanished === 'operation' || vanished === 'handler_rerunnable')
}
