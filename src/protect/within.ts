import { randomUUID } from 'node:crypto'
import { keptInvalid } from '../core/invalid.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { CallSignals } from '../observe/index.ts'
import type { Reply, Run } from '../record/index.ts'
import type { CrashPoint, Queryable, Store } from '../store/contract.ts'
import { refuseNewWork } from './lapsed.ts'
import { proveOr, saysInvalid } from './proof.ts'
import { busyFor, type Outcome, outcomeOf, type TransactionRequest } from './transaction.ts'

/**
 * Protects work inside a transaction that the caller began and will end. Claims first: the caller's effects
 * may have happened before us, so a conflict at the end would come too late. What it returns holds once the
 * caller has committed.
 */
export async function runWithin<Tx>(
  store: Store<Tx>,
  tx: Queryable,
  request: Pick<
    TransactionRequest,
    'id' | 'owner' | 'fingerprint' | 'trace' | 'matches' | 'lapsed' | 'retentionMs'
  >,
  work: (tx: Queryable) => Promise<Reply>,
  crashPoint: CrashPoint,
  signals: CallSignals,
): Promise<Outcome> {
  const { id, owner, fingerprint, trace, matches, lapsed, retentionMs } = request
  const claimant = { kind: 'transaction', attemptId: randomUUID(), owner, fingerprint, trace } as const
  const waited = new Deadline(LIMITS.lockWaitMaxMs)
  crashPoint('within.claim.before')
  const claim = { id, claimant, matches, leaseMs: LIMITS.leaseMs, takeover: 'doubt' } as const
  let from: Run['from'] = 'none'
  const end = await store
    .within(tx, claim, retentionMs, async (inner, claimed) => {
      // The claim is undone with what is thrown here. A look beforehand would need a second connection.
      refuseNewWork(lapsed, claimed.from)
      from = claimed.from
      signals.decided(claimed)
      crashPoint('within.work.before')
      const reply = await work(inner)
      crashPoint('within.work.after')
      return reply
    })
    .catch((error) => {
      // The claim is undone, so the key is as it was before.
      if (saysInvalid(error)) throw from === 'retryable' ? keptInvalid(error) : error
      // Another's claim may stand by now: it proves nothing.
      throw proveOr(error, null, 'not_applied')
    })
  crashPoint('within.complete.after')
  switch (end.end) {
    case 'completed':
      return { outcome: 'executed', reply: end.reply }
    case 'busy':
      return busyFor(waited)
    case 'decided':
      signals.decided(end.decision)
      return outcomeOf(end.decision)
    default:
      return end satisfies never
  }
}
