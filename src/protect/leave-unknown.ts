import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { CallSignals } from '../observe/index.ts'
import { failureOf } from '../record/failure.ts'
import type { Store, TransactionAttempt } from '../store/contract.ts'

/**
 * The function ended its own transaction, or used none of it, so what it did may stand without its record. If not
 * even that can be noted, the caller must not hear that nothing happened.
 */
export async function leaveUnknown<Tx>(
  store: Store<Tx>,
  attempt: TransactionAttempt,
  error: Error,
  graceMs: number,
  signals: CallSignals,
): Promise<void> {
  const deadline = new Deadline(LIMITS.saveMaxMs)
  for (let tries = 0; ; tries += 1) {
    try {
      return await leaveUnknownOnce(store, attempt, error, graceMs, signals)
    } catch {
      // Without this record a retry would run as if nothing had happened: it is worth waiting for.
      if (!(await deadline.backOff(tries))) throw new OnlyonceError('outcome_unknown', { cause: error })
    }
  }
}

async function leaveUnknownOnce<Tx>(
  store: Store<Tx>,
  { id, claimant, retentionMs }: TransactionAttempt,
  error: Error,
  graceMs: number,
  signals: CallSignals,
): Promise<void> {
  const bounds = { leaseMs: LIMITS.leaseMs, retentionMs }
  const decision = await store.claim({ id, claimant, matches: () => true, takeover: 'resume', ...bounds })
  if (decision.kind !== 'run') return
  const owned = { id, fence: decision.record.fence, attemptId: claimant.attemptId }
  const failure = failureOf(error)
  await store.doubt(owned, failure, graceMs)
  signals.doubted(failure)
}
