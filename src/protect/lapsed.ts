import type { OnlyonceError } from '../errors.ts'
import type { OnceRecord } from '../record/index.ts'

/**
 * Refuses to start something new under a key that has expired. A record that is there was begun in time, and is
 * answered as ever: who retries a completed payment a minute too late gets its reply, not a refusal.
 */
export function refuseNewWork(lapsed: OnlyonceError | null, record: OnceRecord | null): void {
  if (lapsed !== null && (record === null || record.state === 'expired')) throw lapsed
}
