import {
  type Attempt,
  type Kind,
  mayHideEffects,
  type OnceRecord,
  type Parked,
  type RecordId,
  type State,
  type Unknown,
} from './record/index.ts'
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
  /** When somebody looks next what became of it; null where nobody does. */
  readonly look_at: number | null
  readonly expires_at: number | null
}

export async function explain<Tx>(store: Store<Tx>, id: RecordId): Promise<Explanation> {
  const seen = await store.look(id)
  if (seen === null) {
    return {
      state: 'none',
      why: 'No request with this key has left a record: it was not used, its request was called invalid, or its record was removed.',
      next: 'The next request with this key runs.',
      attempts: [],
      created_at: null,
      changed_at: null,
      lease_until: null,
      look_at: null,
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
    look_at: record.state === 'unknown' ? record.look_at : null,
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
            why: `${record.owner} has not been heard of since its lease ran out, ${seconds(now - record.lease_until)} ago.`,
            next: AFTER_LEASE[record.kind],
          }
    case 'completed':
      return {
        why: record.decided
          ? `It was settled in the place of attempt ${record.fence}, by an operator or by recover.`
          : `Attempt ${record.fence} completed it.`,
        next: 'Retries get the stored reply until the record is removed.',
      }
    case 'retryable':
      return {
        why: mayHideEffects(record)
          ? `Attempt ${record.fence} failed. It, or an earlier one of a rerunnable handler, may have had effects: ${sentence(record.failure)}`
          : `Attempt ${record.fence} failed and nothing happened: ${sentence(record.failure)}`,
        next: 'The next request with this key and the same content runs again.',
      }
    case 'unknown':
      return {
        why: `Whether attempt ${record.fence} took effect is not known: ${sentence(record.failure)}`,
        next: `Nothing runs until it is settled. ${lookOf(record, now)}`,
      }
    case 'parked':
      return {
        why: `${record.decided ? 'An operator parked it' : 'No more automatic attempts are made'}: ${sentence(record.failure)}`,
        next: nextOfParked(record),
      }
    case 'expired':
      return { why: 'Its retention has ended.', next: 'The next request with this key runs as a new one.' }
    default:
      return record satisfies never
  }
}

/** What becomes of a record in progress whose lease is over. */
const AFTER_LEASE: Readonly<Record<Kind, string>> = {
  transaction: 'A worker or the next retry parks it for an operator, unless its owner answers first.',
  operation: 'A worker, or the next retry, goes on with it from its last durable step.',
  handler:
    'A worker or the next retry looks after it: it is parked for an operator where no recover can tell what became of it. Its owner may still answer.',
  handler_rerunnable: 'The next request with this key runs it again.',
  handler_recoverable:
    'A worker or the next retry asks recover what became of it. Its owner may still answer meanwhile.',
}

function lookOf(record: Unknown, now: number): string {
  const { look_at, kind, looks } = record
  if (kind === 'operation') {
    return look_at === null
      ? 'Nobody looks by himself: an operator has to.'
      : `A worker looks ${when(look_at, now)}.`
  }
  const asked = looks > 0 ? ` recover was asked ${looks} times.` : ''
  return `A worker or a retry looks ${when(look_at ?? now, now)}: recover is asked, and without one it is parked for an operator.${asked}`
}

function nextOfParked({ kind, decided }: Parked): string {
  const owner = kind === 'operation' || decided ? '' : ' Until then the late reply of its owner still counts.'
  return `An operator has to decide.${owner}`
}

function when(time: number, now: number): string {
  return time <= now ? 'now' : `in ${seconds(time - now)}`
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`
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
