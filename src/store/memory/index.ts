import { randomUUID } from 'node:crypto'
import { OnlyonceError } from '../../core/errors.ts'
import { refuseUnknown } from '../../core/options.ts'
import {
  type Answerable,
  type Attempt,
  complete,
  type Decision,
  decide,
  doubt,
  expire,
  extend,
  type Failure,
  type InProgress,
  mayAnswer,
  mayForget,
  mayHideEffects,
  type OnceRecord,
  ownRun,
  owns,
  type RecordId,
  type Reply,
  type Run,
  release,
  reserve,
  type Stuck,
} from '../../record/index.ts'
import type {
  ClaimRequest,
  CrashPoint,
  KeyIds,
  MadeKey,
  Owned,
  Queryable,
  Reaped,
  ReapRequest,
  Seen,
  Store,
  TransactionAttempt,
  TransactionEnd,
  WithinEnd,
} from '../contract.ts'
import { keyRingIncomplete, keysOf, lacking } from '../missing-keys.ts'
import type { RecoveryStore } from '../recovery.ts'
import { MemoryRecovery } from './recovery.ts'

/**
 * Keeps records in this process, for tests and examples. It obeys the same rules as PostgreSQL, but nothing
 * survives the process, and work that throws is not undone: there is no database to roll back.
 *
 * @example
 * const once = onlyonce({ store: memory(), secret: 'a secret of at least thirty-two bytes' })
 */
export function memory(options: { readonly clock?: () => number } = {}): Store<Queryable> {
  refuseUnknown('memory()', options, { clock: true })
  return new MemoryStore(options.clock ?? Date.now)
}

class MemoryStore implements Store<Queryable> {
  /** Nothing is in doubt where nothing is sent. */
  readonly doubtMaxMs = 0
  readonly #clock: () => number
  readonly #records = new Map<string, OnceRecord>()
  #made: MadeKey | null = null
  readonly #attempts = new Map<string, Attempt[]>()
  /** Keys whose transaction is open. There is no rollback here, so duplicates never run side by side. */
  readonly #open = new Set<string>()

  /** What claims said of how long their records are kept, for who ends one in the owner's place. */
  readonly #retentions = new Map<string, number>()
  readonly recovery: RecoveryStore

  constructor(clock: () => number) {
    this.#clock = clock
    this.recovery = new MemoryRecovery({
      now: clock,
      all: () => [...this.#records].map(([at, record]) => ({ id: idAt(at), record })),
      get: (id) => this.#records.get(address(id)) ?? null,
      put: (id, next) => this.#put(id, next),
      retentionOf: (id, otherwiseMs) => this.#retentions.get(address(id)) ?? otherwiseMs,
    })
  }

  async start(keys: KeyIds): Promise<void> {
    this.#made ??= keys.made?.candidate ?? null
    if (this.#made !== null) keys.made?.take(this.#made, { lasts: false })
    const missing = lacking([...this.#records.values()].flatMap(keysOf), keys)
    if (missing.length > 0) throw keyRingIncomplete(missing, keys)
  }

  async look(id: RecordId): Promise<Seen | null> {
    const record = this.#records.get(address(id))
    return record === undefined ? null : { record, now: this.#clock() }
  }

  async history(id: RecordId): Promise<readonly Attempt[]> {
    return [...(this.#attempts.get(address(id)) ?? [])]
  }

  async claim(request: ClaimRequest): Promise<Decision> {
    return this.#claim(request)
  }

  async complete(owned: Owned, reply: Reply, retentionMs: number): Promise<void> {
    this.#answer(owned, 'completed', (record) => complete(record, reply, retentionMs, this.#clock()))
  }

  async release(owned: Owned, failure: Failure, retentionMs: number, hides?: boolean): Promise<void> {
    this.#answer(owned, 'retryable', (record) => release(record, failure, retentionMs, this.#clock(), hides))
  }

  async forget({ id, fence, attemptId }: Owned): Promise<boolean> {
    const at = address(id)
    const record = this.#records.get(at) ?? null
    if (record?.attemptId !== attemptId)
      return !(this.#attempts.get(at) ?? []).some((past) => past.attemptId === attemptId)
    if (!mayForget(record, fence)) return false
    this.#records.delete(at)
    this.#retentions.delete(at)
    return true
  }

  async doubt(owned: Owned, failure: Failure, lookInMs = 0): Promise<void> {
    const now = this.#clock()
    this.#change(owned, 'unknown', (record) => doubt(record, failure, now, now + lookInMs))
  }

  async extend(owned: Owned, leaseMs: number): Promise<void> {
    const write = leaseMs > 0 ? this.#answer : this.#change
    write.call(this, owned, 'in_progress', (record: Answerable) => extend(record, leaseMs, this.#clock()))
  }

  async transact(
    attempt: TransactionAttempt,
    work: (tx: Queryable) => Promise<Reply>,
    crashPoint: CrashPoint,
  ): Promise<TransactionEnd> {
    const at = address(attempt.id)
    if (this.#open.has(at)) return { end: 'busy' }
    this.#open.add(at)
    try {
      if (!this.#isStill(attempt)) return { end: 'conflict' }
      crashPoint('transaction.work.before')
      const reply = await work(NO_DATABASE)
      crashPoint('transaction.work.after')
      if (!this.#isStill(attempt)) return { end: 'conflict' }
      const now = this.#clock()
      const taken = reserve(attempt.previous, attempt.claimant, 0, now)
      this.#put(attempt.id, complete(taken, reply, attempt.retentionMs, now))
      return { end: 'committed', reply }
    } catch (error) {
      return { end: 'failed', error }
    } finally {
      this.#open.delete(at)
    }
  }

  async settle(attempt: TransactionAttempt): Promise<'committed' | 'rolled_back'> {
    const { attemptId } = attempt.claimant
    const known = this.#records.get(address(attempt.id))?.attemptId === attemptId
    const kept = this.#attempts.get(address(attempt.id))?.some((past) => past.attemptId === attemptId)
    if (known || kept === true) return 'committed'
    await this.leaveRetryable(
      { ...attempt, claimant: { ...attempt.claimant, attemptId: randomUUID() } },
      { code: 'commit_lost', message: 'The attempt was found not to have committed.' },
    )
    return 'rolled_back'
  }

  async leaveRetryable(attempt: TransactionAttempt, failure: Failure): Promise<boolean> {
    if (!this.#isStill(attempt)) return false
    const now = this.#clock()
    const taken = reserve(attempt.previous, attempt.claimant, 0, now)
    const hides = mayHideEffects(attempt.previous)
    this.#put(attempt.id, release(taken, failure, attempt.retentionMs, now, hides))
    return true
  }

  async stuck(olderThanMs: number): Promise<Stuck> {
    const now = this.#clock()
    const countOf = (state: keyof Stuck) => {
      const ages = [...this.#records.values()]
        .filter((record) => record.state === state)
        .map((record) => now - record.attemptedAt)
        .filter((ageMs) => ageMs >= olderThanMs)
      return { count: ages.length, oldestAgeMs: ages.reduce((a, b) => Math.max(a, b), 0) }
    }
    return { in_progress: countOf('in_progress'), unknown: countOf('unknown'), parked: countOf('parked') }
  }

  async reap({ mode, batchMax, keptMinMs }: ReapRequest): Promise<Reaped> {
    const now = this.#clock()
    const due = [...this.#records].flatMap(([at, record]) => {
      if (record.state !== 'completed' && record.state !== 'retryable') return []
      const expired = record.changedAt + keptMinMs > now ? null : expire(record, now)
      return expired === null ? [] : [{ at, expired }]
    })
    due.sort((a, b) => a.expired.expiresAt - b.expired.expiresAt)
    for (const { at, expired } of due.slice(0, batchMax)) {
      if (mode === 'expire') this.#records.set(at, expired)
      else {
        this.#records.delete(at)
        this.#attempts.delete(at)
        this.#retentions.delete(at)
      }
    }
    return { count: Math.min(due.length, batchMax), more: due.length > batchMax }
  }

  async within(
    tx: Queryable,
    request: ClaimRequest,
    retentionMs: number,
    work: (tx: Queryable, claimed: Run) => Promise<Reply>,
  ): Promise<WithinEnd> {
    const at = address(request.id)
    const before = { record: this.#records.get(at), attempts: this.#attempts.get(at) }
    const decision = this.#claim(request)
    if (decision.kind !== 'run') return { end: 'decided', decision }
    try {
      const reply = await work(tx, decision)
      this.#put(request.id, complete(decision.record, reply, retentionMs, this.#clock()))
      return { end: 'completed', reply }
    } catch (error) {
      if (before.record === undefined) this.#records.delete(at)
      else this.#records.set(at, before.record)
      if (before.attempts === undefined) this.#attempts.delete(at)
      else this.#attempts.set(at, before.attempts)
      throw error
    }
  }

  async close(): Promise<void> {}

  #claim(request: ClaimRequest): Decision {
    const { id, claimant, matches, leaseMs, takeover, graceMs, retentionMs } = request
    const record = this.#records.get(address(id)) ?? null
    if (record?.state === 'in_progress' && record.attemptId === claimant.attemptId) return ownRun(record)
    const sameRequest = record === null || record.state === 'expired' || matches(record.fingerprint)
    const decision = decide(record, { claimant, sameRequest, leaseMs, takeover, graceMs }, this.#clock())
    if (decision.kind === 'run' || decision.kind === 'vanished') this.#put(id, decision.record)
    if (decision.kind === 'run' && retentionMs !== undefined) this.#retentions.set(address(id), retentionMs)
    return decision
  }

  #change(owned: Owned, state: string, next: (record: InProgress) => OnceRecord): void {
    const record = this.#records.get(address(owned.id)) ?? null
    if (owns(record, owned.fence) && record.attemptId === owned.attemptId) this.#put(owned.id, next(record))
    else requireRepeated(record, owned, state)
  }

  /** What the owner says itself also counts where it was given up meanwhile. */
  #answer(owned: Owned, state: string, next: (record: Answerable) => OnceRecord): void {
    const record = this.#records.get(address(owned.id)) ?? null
    if (mayAnswer(record, owned.fence) && record.attemptId === owned.attemptId)
      this.#put(owned.id, next(record))
    else requireRepeated(record, owned, state)
  }

  /** Writes a record; a new fence sends the attempt before it into the history. */
  #put(id: RecordId, next: OnceRecord): void {
    const at = address(id)
    const before = this.#records.get(at)
    if (before !== undefined && before.fence !== next.fence) {
      const attempt: Attempt = {
        fence: before.fence,
        attemptId: before.attemptId,
        owner: before.owner,
        startedAt: before.attemptedAt,
        endedAt: endOf(before, next.attemptedAt),
        outcome: before.state === 'in_progress' ? 'abandoned' : before.state,
        failure: 'failure' in before ? before.failure : null,
      }
      this.#attempts.set(at, [...(this.#attempts.get(at) ?? []), attempt])
    }
    this.#records.set(at, next)
  }

  #isStill({ id, previous }: TransactionAttempt): boolean {
    return (this.#records.get(address(id))?.fence ?? 0) === (previous?.fence ?? 0)
  }
}

const NO_DATABASE: Queryable = {
  query: () => Promise.reject(new OnlyonceError('memory_has_no_database')),
}

/** When an attempt ended that is superseded now. */
function endOf(record: OnceRecord, now: number): number {
  if (record.state === 'in_progress') return record.leaseUntil
  return record.state === 'expired' ? now : record.changedAt
}

function requireRepeated(record: OnceRecord | null, { attemptId }: Owned, state: string): void {
  if (record?.attemptId !== attemptId || record.state !== state || record.decided)
    throw new OnlyonceError('lease_lost')
}

function address(id: RecordId): string {
  return JSON.stringify([id.account, id.operation, id.key])
}

function idAt(at: string): RecordId {
  const [account, operation, key] = JSON.parse(at) as [string, string, string]
  return { account, operation, key }
}
