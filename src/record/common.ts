import type { OnceRecord } from './record.ts'

/** The members that every state has, without those of one state. */
export function common(record: OnceRecord) {
  const { kind, fence, attempt_id, owner, fingerprint, trace, decided, has_steps } = record
  const { created_at, attempted_at, changed_at } = record
  const identity = { kind, fence, attempt_id, owner, fingerprint, trace, decided }
  return { ...identity, ...(has_steps === true && { has_steps }), created_at, attempted_at, changed_at }
}
