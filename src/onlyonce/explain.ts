import { LIMITS } from '../core/limits.ts'
import { derivedKey } from '../key/index.ts'
import { type Attempt, EDGES, type OnceRecord, type RecordId, type State } from '../record/index.ts'
import { failureOfReply, isErased, thrownIn } from '../record/value.ts'
import type { Store } from '../store/contract.ts'
import type { AuditEntry, RecordSummary } from '../store/decisions.ts'
import { describe, describeNone, type Facts, type InDoubt, type SettledBy } from './explain-text.ts'

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
  readonly replyStatus: number | null
  /** Who has decided in the place of the owner; null where the owner's own word stands. */
  readonly settledBy: SettledBy | null
  /** The call of an operation whose outcome is in doubt, also while it is looked at or parked; null where it is no single call. */
  readonly inDoubt: InDoubt | null
  /** Where there is no record: other operations under which this account has used the key. */
  readonly elsewhere: readonly string[]
  readonly createdAt: number | null
  readonly changedAt: number | null
  readonly leaseUntil: number | null
  /** When a worker or a retry looks next what became of it; null where none does. */
  readonly lookAt: number | null
  readonly expiresAt: number | null
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
    replyStatus: facts.replyStatus,
    settledBy: facts.settledBy,
    inDoubt: facts.inDoubt,
    elsewhere: [],
    createdAt: record.createdAt,
    changedAt: record.changedAt,
    leaseUntil: record.state === 'in_progress' ? record.leaseUntil : null,
    lookAt: record.state === 'unknown' ? record.lookAt : null,
    expiresAt: 'expiresAt' in record ? record.expiresAt : null,
  }
}

/** Of this account alone: what others use is not told. */
async function elsewhereOf<Tx>({ decisions }: Store<Tx>, { account, key }: RecordId): Promise<string[]> {
  if (decisions === undefined) return []
  const asked = { account, key, operation: null, failed: false, olderThanMs: 0, after: null }
  const found = await decisions.list({ ...asked, states: STATES, limit: LIMITS.nearNamesMax })
  return found.map(({ record }) => record.operation)
}

const STATES = Object.keys(EDGES).filter((state): state is State => state !== 'none')

function unrecorded(id: RecordId, elsewhere: readonly string[]): Explanation {
  return {
    state: 'none',
    ...describeNone(id, elsewhere),
    attempts: [],
    replyStatus: null,
    settledBy: null,
    inDoubt: null,
    elsewhere,
    createdAt: null,
    changedAt: null,
    leaseUntil: null,
    lookAt: null,
    expiresAt: null,
  }
}

/** What a record does not say of itself. */
function factsOf(record: OnceRecord, summary: RecordSummary | null, audit: readonly AuditEntry[]): Facts {
  const open = record.state === 'unknown' || record.state === 'parked' || record.state === 'in_progress'
  const decision = audit.findLast(
    ({ action, fence, to }) => action !== 'add_evidence' && fence === record.fence && to === record.state,
  )
  const byOperator = decision !== undefined || record.state === 'parked'
  return {
    ...replyFacts(record, summary),
    settledBy: record.decided ? (byOperator ? 'operator' : 'recover') : null,
    givenUp: decision?.action === 'give_up',
    erased: record.state === 'completed' && (readable(() => isErased(record.reply)) ?? false),
    recoveryPoint: summary?.recoveryPoint ?? null,
    inDoubt: open && summary !== null ? callInDoubt(summary) : null,
  }
}

/** A key does not name its step: the step counts where the key is one of its own, of any generation. */
function callInDoubt(summary: RecordSummary): InDoubt | null {
  const { waitsFor: key, waitsStep, waitsSince, changedAt, voidCalls } = summary
  if (key === null) return null
  const keyOf = (generation: number) => derivedKey({ ...summary, step: waitsStep!, generation })
  const generations = waitsStep === null ? [] : [...voidCalls.keys(), voidCalls.length]
  const generation = generations.find((one) => keyOf(one) === key)
  // An earlier version of the library has left it, and has not kept the step.
  if (generation === undefined) return { step: null, key, generation: null, since: changedAt }
  return { step: waitsStep, key, generation, since: waitsSince ?? changedAt }
}

function replyFacts(
  record: OnceRecord,
  summary: RecordSummary | null,
): Pick<Facts, 'replyStatus' | 'failure'> {
  if (record.state !== 'completed') return { replyStatus: null, failure: null }
  const reply = readable(() => record.reply)
  const replyStatus = reply?.status ?? summary?.replyStatus ?? null
  if (record.decided) return { replyStatus, failure: null }
  if (reply === null) return { replyStatus, failure: summary?.failure ?? null }
  return { replyStatus, failure: thrownIn(reply) ?? failureOfReply(reply, record.kind) }
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
    attemptId: record.attemptId,
    owner: record.owner,
    startedAt: record.attemptedAt,
    endedAt: record.state === 'in_progress' ? null : record.changedAt,
    outcome: record.state,
    failure: 'failure' in record ? record.failure : failure,
  }
}
