import { describe, describeNone, type Facts, type InDoubt, type SettledBy } from './explain-text.ts'
import { derivedKey } from './key/index.ts'
import { LIMITS } from './limits.ts'
import { type Attempt, EDGES, type OnceRecord, type RecordId, type State } from './record/index.ts'
import type { Store } from './store/contract.ts'
import type { AuditEntry, RecordSummary } from './store/decisions.ts'
import { failureOfReply, thrownIn } from './value.ts'

export type { InDoubt } from './explain-text.ts'

/** The story of one key. Times are milliseconds since the epoch by the store's clock. */
export interface Explanation {
  readonly state: State | 'none'
  /** Why it is so, in a sentence. */
  readonly why: string
  /** What happens next, in a sentence. */
  readonly next: string
  /** All attempts, oldest first; the last one is the present. */
  readonly attempts: readonly Attempt[]
  /** The status of the stored reply; null where none is stored. */
  readonly reply_status: number | null
  /** Who has decided in the place of the owner; null where the owner's own word stands. */
  readonly settled_by: SettledBy | null
  /** The call of an operation whose outcome is in doubt, also while it is looked at or parked; null where it is no single call. */
  readonly in_doubt: InDoubt | null
  /** Where there is no record: other operations under which this account has used the key. */
  readonly elsewhere: readonly string[]
  readonly created_at: number | null
  readonly changed_at: number | null
  readonly lease_until: number | null
  /** When a worker or a retry looks next what became of it; null where none does. */
  readonly look_at: number | null
  readonly expires_at: number | null
}

export async function explain<Tx>(store: Store<Tx>, id: RecordId): Promise<Explanation> {
  const seen = await store.look(id)
  if (seen === null) return unrecorded(id, await elsewhereOf(store, id))
  const { record, now } = seen
  // After the record: a step that was committed before it was seen is then told in any case.
  const [past, summary, audit] = await Promise.all([
    store.history(id),
    store.decisions?.summary(id) ?? null,
    record.decided ? (store.decisions?.audit(id) ?? []) : [],
  ])
  const facts = factsOf(record, summary, audit)
  return {
    state: record.state,
    ...describe(record, facts, now),
    attempts: [...past.filter((attempt) => attempt.fence < record.fence), present(record, facts)],
    reply_status: facts.reply_status,
    settled_by: facts.settled_by,
    in_doubt: facts.in_doubt,
    elsewhere: [],
    created_at: record.created_at,
    changed_at: record.changed_at,
    lease_until: record.state === 'in_progress' ? record.lease_until : null,
    look_at: record.state === 'unknown' ? record.look_at : null,
    expires_at: 'expires_at' in record ? record.expires_at : null,
  }
}

/** Of this account alone: what others use is not told. */
async function elsewhereOf<Tx>({ decisions }: Store<Tx>, { account, key }: RecordId): Promise<string[]> {
  if (decisions === undefined) return []
  const asked = { account, key, operation: null, failed: false, older_than_ms: 0, after: null }
  const found = await decisions.list({ ...asked, states: STATES, limit: LIMITS.near_names_max })
  return found.map(({ record }) => record.operation)
}

const STATES = Object.keys(EDGES).filter((state): state is State => state !== 'none')

function unrecorded(id: RecordId, elsewhere: readonly string[]): Explanation {
  return {
    state: 'none',
    ...describeNone(id, elsewhere),
    attempts: [],
    reply_status: null,
    settled_by: null,
    in_doubt: null,
    elsewhere,
    created_at: null,
    changed_at: null,
    lease_until: null,
    look_at: null,
    expires_at: null,
  }
}

/** What a record does not say of itself. */
function factsOf(record: OnceRecord, summary: RecordSummary | null, audit: readonly AuditEntry[]): Facts {
  const open = record.state === 'unknown' || record.state === 'parked' || record.state === 'in_progress'
  const decision = audit.findLast(
    ({ action, fence, to }) => action !== 'add_evidence' && fence === record.fence && to === record.state,
  )
  const by_operator = decision !== undefined || record.state === 'parked'
  return {
    ...replyFacts(record, summary),
    settled_by: record.decided ? (by_operator ? 'operator' : 'recover') : null,
    given_up: decision?.action === 'give_up',
    recovery_point: summary?.recovery_point ?? null,
    in_doubt: open && summary !== null ? callInDoubt(summary) : null,
  }
}

/** A key does not name its step: the step counts where the key is one of its own, of any generation. */
function callInDoubt(summary: RecordSummary): InDoubt | null {
  const { waits_for: key, waits_step, waits_since, changed_at, void_calls } = summary
  if (key === null) return null
  const keyOf = (generation: number) => derivedKey({ ...summary, step: waits_step!, generation })
  const generations = waits_step === null ? [] : [...void_calls.keys(), void_calls.length]
  const generation = generations.find((one) => keyOf(one) === key)
  // An earlier version of the library has left it, and has not kept the step.
  if (generation === undefined) return { step: null, key, generation: null, since: changed_at }
  return { step: waits_step, key, generation, since: waits_since ?? changed_at }
}

function replyFacts(
  record: OnceRecord,
  summary: RecordSummary | null,
): Pick<Facts, 'reply_status' | 'failure'> {
  if (record.state !== 'completed') return { reply_status: null, failure: null }
  const reply = readable(() => record.reply)
  const reply_status = reply?.status ?? summary?.reply_status ?? null
  if (record.decided) return { reply_status, failure: null }
  if (reply === null) return { reply_status, failure: summary?.failure ?? null }
  return { reply_status, failure: thrownIn(reply) ?? failureOfReply(reply, record.kind) }
}

/** The story of a key is told without any key of ours: what is sealed, or broken, is left out of it. */
function readable<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}

function present(record: OnceRecord, { failure }: Facts): Attempt {
  return {
    fence: record.fence,
    attempt_id: record.attempt_id,
    owner: record.owner,
    started_at: record.attempted_at,
    ended_at: record.state === 'in_progress' ? null : record.changed_at,
    outcome: record.state,
    failure: 'failure' in record ? record.failure : failure,
  }
}
