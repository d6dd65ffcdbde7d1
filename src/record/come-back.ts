/** When it is worth asking again about a record that is not finished. A client is told so as `Retry-After`. */
import { LIMITS } from '../limits.ts'
import type { InProgress, Unknown } from './record.ts'

/**
 * What has taken so long takes about as long again, as far as anybody can tell. A client that obeys asks after one
 * second, two, four, eight: soon where the answer is near, and seldom where it is not.
 */
export function asLongAgain(elapsed_ms: number): number {
  return Math.max(LIMITS.retry_after_ms, Math.min(elapsed_ms, LIMITS.retry_after_max_ms))
}

/** The owner may end at any moment. If it is dead, the record is free when the lease has run out, and not before. */
export function afterOwner({ attempted_at, lease_until }: InProgress, now: number): number {
  return Math.max(1, Math.min(asLongAgain(now - attempted_at), lease_until - now))
}

/**
 * Nothing is found out before the next look, unless evidence or an operator comes first: hence the bound. The worker that
 * looks comes by once in `worker_every_ms`.
 */
export function afterLook(
  { look_at, changed_at }: Pick<Unknown, 'look_at' | 'changed_at'>,
  now: number,
): number {
  if (look_at === null) return asLongAgain(now - changed_at)
  return look_at > now ? lookedAtIn(look_at - now) : asLongAgain(now - look_at)
}

/** The same for a look that was planned just now. */
export function lookedAtIn(in_ms: number): number {
  return Math.min(in_ms + LIMITS.worker_every_ms, LIMITS.retry_after_max_ms)
}
