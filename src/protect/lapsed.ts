import type { OnlyonceError } from '../core/errors.ts'
import type { State } from '../record/index.ts'

/**
 * Refuses to start something new under a key that has expired. A record that is there was begun in time, and is
 * answered as ever: who retries a completed payment a minute too late gets its reply, not a refusal.
 */
export function refuseNewWork(lapsed: OnlyonceError | null, before: State | 'none'): void {
  if (lapsed !== null && (before === 'none' || before === 'expired')) throw lapsed
}
