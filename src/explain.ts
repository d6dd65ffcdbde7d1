import type { Attempt, OnceRecord, RecordId, State } from './record/index.ts'
import type { Store } from './store/contract.ts'

/** The story of one key. Times are milliseconds since the epoch by the store's clock. */
export interface Explanation {
  readonly state: State | 'none'
  /** Why it is so, in a sentence. */
  readonly why: string
  /** What happens next, in a sentence. */
  readonly next: string
  /** All attempts, oldest first; the last one is the present. */
  readonly attempts: readonly Attempt[]
  readonly created_at: number | null
  readonly changed_at: number | null
  readonly lease_until: number | null
  readonly expires_at: number | null
}

export async function explain<Tx>(store: Store<Tx>, id: RecordId): Promise<Explanation> {
  const seen = await store.look(id)
  if (seen === null) {
    return {
      state: 'none',
      why: 'No request with this key has taken effect, and none is known to have failed.',
      next: 'The next request with this key runs.',
      attempts: [],
      created_at: null,
      changed_at: null,
      lease_until: null,
      expires_at: null,
    }
  }
  const { record, now } = seen
  const past = await store.history(id)
  return {
    state: record.state,
    ...describe(record, now),
    attempts: [...past.filter((attempt) => attempt.fence < record.fence), present(record)],
    created_at: record.created_at,
    changed_at: record.changed_at,
    lease_until: record.state === 'in_progress' ? record.lease_until : null,
    expires_at: 'expires_at' in record ? record.expires_at : null,
  }
}

function describe(record: OnceRecord, now: number): { why: string; next: string } {
  switch (record.state) {
    case 'in_progress':
      return record.lease_until > now
        ? {
            why: `${record.owner} works on it.`,
            next: 'Retries are told to wait until it ends or its lease runs out.',
          }
        : {
            why: `${record.owner} has not been heard of since its lease ran out.`,
            next: 'The next claim takes it over.',
          }
    case 'completed':
      return {
        why: `Attempt ${record.fence} completed it.`,
        next: 'Retries get the stored reply until the record is removed.',
      }
    case 'retryable':
      return {
        why: `Attempt ${record.fence} failed and nothing happened: ${sentence(record.failure)}`,
        next: 'The next request with this key and the same content runs again.',
      }
    case 'unknown':
      return {
        why: `Whether attempt ${record.fence} took effect is not known: ${sentence(record.failure)}`,
        next: 'Nothing runs until it is settled.',
      }
    case 'parked':
      return {
        why: `No more automatic attempts are made: ${sentence(record.failure)}`,
        next: 'An operator has to decide.',
      }
    case 'expired':
      return { why: 'Its retention has ended.', next: 'The next request with this key runs as a new one.' }
    default:
      return record satisfies never
  }
}

function present(record: OnceRecord): Attempt {
  return {
    fence: record.fence,
    attempt_id: record.attempt_id,
    owner: record.owner,
    started_at: record.attempted_at,
    ended_at: record.state === 'in_progress' ? null : record.changed_at,
    outcome: record.state,
    failure: 'failure' in record ? record.failure : null,
  }
}

function sentence({ code, message }: { code: string; message: string }): string {
  return message === '' ? code : `${code}: ${message}`
}
