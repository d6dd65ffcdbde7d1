/** When it is worth asking again about a record that is not finished. A client is told so as `Retry-After`. */
import { LIMITS } from '../core/limits.ts'
import type { InProgress, Unknown } from './record.ts'

/**
 * What has taken so long takes about as long again, as far as anybody can tell. A client that obeys asks after one
 * second, two, four, eight: soon where the answer is near, and seldom where it is not.
 */
export function asLongAgain(elapsedMs: number): number {
  return Math.max(LIMITS.retryAfterMs, Math.min(elapsedMs, LIMITS.retryAfterMaxMs))
}

/** The owner may end at any moment. If it is dead, the record is free when the lease has run out, and not before. */
export function afterOwner({ attemptedAt, leaseUntil }: InProgress, now: number): number {
  return Math.max(1, Math.min(asLongAgain(now - attemptedAt), leaseUntil - now))
}

/**
 * Nothing is found out before the next look, unless evidence or an operator comes first: hence the bound. The worker that
 * looks comes by once in `workerEveryMs`.
 */
export function afterLook({ lookAt, changedAt }: Pick<Unknown, 'lookAt' | 'changedAt'>, now: number): number {
  if (lookAt === null) return asLongAgain(now - changedAt)
  return lookAt > now ? lookedAtIn(lookAt - now) : asLongAgain(now - lookAt)
}

/** The same for a look that was planned just now. */
export function lookedAtIn(inMs: number): number {
  return Math.min(inMs + LIMITS.workerEveryMs, LIMITS.retryAfterMaxMs)
}
