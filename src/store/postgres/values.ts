import type { Failure, Reply } from '../../record/index.ts'
import type { ClaimRequest, TransactionAttempt } from '../contract.ts'
import { letterOf, replyValues } from './rows.ts'

type Value = string | Buffer | null

/** The first eight values of every insert: who, under which attempt, with which fingerprint. */
export function identityValues({ id, claimant }: Pick<TransactionAttempt, 'id' | 'claimant'>): Value[] {
  const { attempt_id, owner, fingerprint, trace } = claimant
  const { digest, key_id } = fingerprint
  return [id.account, id.operation, id.key, attempt_id, owner, digest, key_id, trace]
}

/** The values of `insertInProgress`. */
export function claimValues(
  request: Pick<ClaimRequest, 'id' | 'claimant' | 'lease_ms' | 'retention_ms'>,
): Value[] {
  const { claimant, lease_ms, retention_ms } = request
  const kept = retention_ms === undefined ? null : `${retention_ms}`
  return [...identityValues(request), `${lease_ms}`, letterOf(claimant.kind), kept]
}

export function completedValues(
  attempt: Pick<TransactionAttempt, 'id' | 'claimant' | 'retention_ms'>,
  reply: Reply,
): Value[] {
  const { retention_ms, claimant } = attempt
  return [...identityValues(attempt), `${retention_ms}`, ...replyValues(reply), letterOf(claimant.kind)]
}

export function retryableValues(attempt: TransactionAttempt, failure: Failure): Value[] {
  const { retention_ms, claimant } = attempt
  return [
    ...identityValues(attempt),
    `${retention_ms}`,
    failure.code,
    failure.message,
    letterOf(claimant.kind),
  ]
}

/** The state in which a new attempt takes over an old record. */
export type Next =
  | { readonly state: 'in_progress'; readonly lease_ms: number }
  | { readonly state: 'completed'; readonly reply: Reply }
  | { readonly state: 'retryable'; readonly failure: Failure }

export function supersedeValues(
  attempt: Pick<TransactionAttempt, 'id' | 'claimant' | 'previous' | 'retention_ms'>,
  next: Next,
  xid: string | null = null,
): Value[] {
  const { id, claimant, previous, retention_ms } = attempt
  if (previous === null) throw new Error('there is nothing to supersede')
  const { attempt_id, owner, fingerprint, trace } = claimant
  return [
    id.account,
    id.operation,
    id.key,
    `${previous.fence}`,
    previous.state,
    next.state,
    attempt_id,
    owner,
    fingerprint.digest,
    fingerprint.key_id,
    trace,
    next.state === 'in_progress' ? `${next.lease_ms}` : null,
    next.state === 'in_progress' ? null : `${retention_ms}`,
    ...(next.state === 'completed' ? replyValues(next.reply) : [null, null, null, null, null]),
    ...(next.state === 'retryable' ? [next.failure.code, next.failure.message] : [null, null]),
    letterOf(claimant.kind),
    retention_ms > 0 ? `${retention_ms}` : null,
    xid,
  ]
}
