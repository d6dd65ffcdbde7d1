/** Looks at what became of a record in doubt, as pure functions. */
import type { Completed, Failure, Parked, Reply, Retryable, Unknown } from './record.ts'
import { isDue, park, settleAsNotExecuted, settleWithReply } from './transitions.ts'

/**
 * Takes the right to look, for a while. Who looks writes under the number of its look: of two who look, the first that is
 * late changes nothing. The fence stays, because the owner may still answer.
 */
export function takeLook(record: Unknown, hold_ms: number, now: number): Unknown | null {
  if (!isDue(record, now)) return null
  return { ...record, looks: record.looks + 1, look_at: now + hold_ms }
}

/** What a look came to. */
export type LookEnd =
  /** It happened, and this is the reply. */
  | { readonly end: 'found'; readonly reply: Reply }
  /** It can no longer happen under this key: the same request may run again. */
  | { readonly end: 'void'; readonly failure: Failure }
  /** Not known yet: look again. */
  | { readonly end: 'again'; readonly in_ms: number }
  /** No worker looks any more: an operator decides. */
  | { readonly end: 'parked'; readonly failure: Failure }

export function endLook(
  record: Unknown,
  end: LookEnd,
  retention_ms: number,
  now: number,
): Completed | Retryable | Unknown | Parked {
  switch (end.end) {
    case 'found':
      return settleWithReply(record, end.reply, retention_ms, now)
    case 'void':
      return settleAsNotExecuted({ ...record, failure: end.failure }, retention_ms, now)
    case 'again':
      return { ...record, changed_at: now, look_at: now + end.in_ms }
    case 'parked':
      return park(record, end.failure, now)
    default:
      return end satisfies never
  }
}
