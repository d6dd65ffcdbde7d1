import type { Failure, Reply } from '../../record/index.ts'
import type { ClaimRequest, TransactionAttempt } from '../contract.ts'
import { letterOf, replyValues } from './rows.ts'

type Value = string | Buffer | null

/** The first eight values of every insert: who, under which attempt, with which fingerprint. */
export function identityValues({ id, claimant }: Pick<TransactionAttempt, 'id' | 'claimant'>): Value[] {
  const { attemptId, owner, fingerprint, trace } = claimant
  const { digest, keyId } = fingerprint
  return [id.account, id.operation, id.key, attemptId, owner, digest, keyId, trace]
}

/** The values of `insertInProgress`. */
export function claimValues(
  request: Pick<ClaimRequest, 'id' | 'claimant' | 'leaseMs' | 'retentionMs'>,
): Value[] {
  const { claimant, leaseMs, retentionMs } = request
  const kept = retentionMs === undefined ? null : `${retentionMs}`
  return [...identityValues(request), `${leaseMs}`, letterOf(claimant.kind), kept]
}

export function completedValues(
  attempt: Pick<TransactionAttempt, 'id' | 'claimant' | 'retentionMs'>,
  reply: Reply,
): Value[] {
  const { retentionMs, claimant } = attempt
  return [...identityValues(attempt), `${retentionMs}`, ...replyValues(reply), letterOf(claimant.kind)]
}

export function retryableValues(attempt: TransactionAttempt, failure: Failure): Value[] {
  const { retentionMs, claimant } = attempt
  return [
    ...identityValues(attempt),
    `${retentionMs}`,
    failure.code,
    failure.message,
    letterOf(claimant.kind),
  ]
}

/** The state in which a new attempt takes over an old record. */
export type Next =
  | { readonly state: 'in_progress'; readonly leaseMs: number }
  | { readonly state: 'completed'; readonly reply: Reply }
  | { readonly state: 'retryable'; readonly failure: Failure }

export function supersedeValues(
  attempt: Pick<TransactionAttempt, 'id' | 'claimant' | 'previous' | 'retentionMs'>,
  next: Next,
  xid: string | null = null,
): Value[] {
  const { id, claimant, previous, retentionMs } = attempt
  if (previous === null) throw new Error('there is nothing to supersede')
  const { attemptId, owner, fingerprint, trace } = claimant
  return [
    id.account,
    id.operation,
    id.key,
    `${previous.fence}`,
    previous.state,
    next.state,
    attemptId,
    owner,
    fingerprint.digest,
    fingerprint.keyId,
    trace,
    next.state === 'in_progress' ? `${next.leaseMs}` : null,
    next.state === 'in_progress' ? null : `${retentionMs}`,
    ...(next.state === 'completed' ? replyValues(next.reply) : [null, null, null, null, null]),
    ...(next.state === 'retryable' ? [next.failure.code, next.failure.message] : [null, null]),
    letterOf(claimant.kind),
    retentionMs > 0 ? `${retentionMs}` : null,
    xid,
  ]
}
