import type { OnceRecord } from './record.ts'

/** The members that every state has, without those of one state. */
export function common(record: OnceRecord) {
  const { kind, fence, attemptId, owner, fingerprint, trace, decided, hasSteps } = record
  const { createdAt, attemptedAt, changedAt } = record
  const identity = { kind, fence, attemptId, owner, fingerprint, trace, decided }
  return { ...identity, ...(hasSteps === true && { hasSteps }), createdAt, attemptedAt, changedAt }
}
