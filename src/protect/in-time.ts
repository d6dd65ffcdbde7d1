/** How long the caller of a handler waits, and what the record says when it waits no longer. */
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import type { Failure } from '../record/index.ts'
import type { Owned, Store } from '../store/contract.ts'
import type { Heartbeat } from './heartbeat.ts'

export const TIMED_OUT: Failure = {
  code: 'handler_timed_out',
  message: 'The handler had not answered when its time (inProgressMaxMs) was over.',
}

/** What a caller is told that did not wait any longer. */
export const NO_ANSWER = { detail: 'The handler did not answer in time.', cause: TIMED_OUT }

/** The caller waits no longer than it may; what it waited for goes on without it, for the next to find. */
export function inTime<T>(
  awaited: Promise<T>,
  maxMs: number,
  told: { readonly detail?: string; readonly cause?: unknown },
  onWait: (timer: NodeJS.Timeout) => void = () => {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new OnlyonceError('outcome_unknown', told))
    const timer = setTimeout(late, Math.min(maxMs, LIMITS.timerMaxMs))
    onWait(timer)
    awaited.then(resolve, reject).then(() => clearTimeout(timer))
  })
}

/**
 * The owner lives and has no outcome: the record says so, as far as it can be written. Otherwise its lease runs out. A sign of life
 * that is still under way would take that word back, so it is waited for: timers fire early on a busy process, and the last
 * sign of life is sent in the same moment. What may run again is in no doubt: the next request takes it over.
 */
export function leaveInDoubt<Tx>(
  store: Store<Tx>,
  owned: Owned,
  graceMs: number,
  heartbeat: Heartbeat<Tx>,
  rerunnable: boolean,
): Promise<void> {
  return heartbeat
    .timeIsOver()
    .then(() => (rerunnable ? undefined : store.doubt(owned, TIMED_OUT, graceMs)))
    .catch(() => {})
}
