/** Looks at what became of a record in doubt, as pure functions. */
import type { Completed, Failure, Parked, Reply, Retryable, Unknown } from './record.ts'
import { isDue, park, settleAsNotExecuted, settleWithReply } from './transitions.ts'

/**
 * Takes the right to look, for a while. Who looks writes under the number of its look: of two who look, the first that is
 * late changes nothing. The fence stays, because the owner may still answer.
 */
export function takeLook(record: Unknown, holdMs: number, now: number): Unknown | null {
  if (!isDue(record, now)) return null
  return { ...record, looks: record.looks + 1, lookAt: now + holdMs }
}

/** What a look came to. */
export type LookEnd =
  /** It happened, and this is the reply. */
  | { readonly end: 'found'; readonly reply: Reply }
  /** It can no longer happen under this key: the same request may run again. */
  | { readonly end: 'void'; readonly failure: Failure }
  /** Not known yet: look again. */
  | { readonly end: 'again'; readonly inMs: number }
  /** No worker looks any more: an operator decides. */
  | { readonly end: 'parked'; readonly failure: Failure }

export function endLook(
  record: Unknown,
  end: LookEnd,
  retentionMs: number,
  now: number,
): Completed | Retryable | Unknown | Parked {
  switch (end.end) {
    case 'found':
      return settleWithReply(record, end.reply, retentionMs, now)
    case 'void':
      return settleAsNotExecuted({ ...record, failure: end.failure }, retentionMs, now)
    case 'again':
      return { ...record, changedAt: now, lookAt: now + end.inMs }
    case 'parked':
      return park(record, end.failure, now)
    default:
      return end satisfies never
  }
}
