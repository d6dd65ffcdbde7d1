import { OnlyonceError } from '../core/errors.ts'
import { failureOf } from '../record/failure.ts'
import type { Attempt, Decision, Failure, RecordId, Reply, Run, Stuck } from '../record/index.ts'
import type {
  ClaimRequest,
  CrashPoint,
  KeyIds,
  Owned,
  Queryable,
  Reaped,
  ReapRequest,
  Seen,
  Store,
  TransactionAttempt,
  TransactionEnd,
  WithinEnd,
} from '../store/contract.ts'
import type { DecisionStore } from '../store/decisions.ts'
import type { LockStore } from '../store/locks.ts'
import type { OperationStore } from '../store/operations.ts'
import type { OutboxStore } from '../store/outbox.ts'
import type { RecoveryStore } from '../store/recovery.ts'
import type { WebhookStore } from '../store/webhooks.ts'
import { codeOf, reasonOf } from './code.ts'
import type { Observers } from './observers.ts'
import type { StoreStep } from './signals.ts'
import { StoreHealth } from './store-health.ts'

/**
 * A store whose errors are told, also those that are retried or swallowed further up. Between the front door and the
 * store only where there is an observer.
 */
export class WatchedStore<Tx> implements Store<Tx> {
  declare readonly outbox?: OutboxStore
  readonly #store: Store<Tx>
  readonly #observers: Observers
  readonly #health: StoreHealth
  readonly locks?: LockStore
  readonly operations?: OperationStore<Tx>
  readonly decisions?: DecisionStore
  readonly recovery: RecoveryStore
  readonly webhooks?: WebhookStore

  constructor(store: Store<Tx>, observers: Observers) {
    this.#store = store
    this.#observers = observers
    this.#health = new StoreHealth(observers)
    this.recovery = this.#watchAll(store.recovery, 'recover')
    if (store.operations !== undefined) this.operations = this.#watchAll(store.operations, 'operation')
    if (store.locks !== undefined) this.locks = this.#watchAll(store.locks, 'lock')
    if (store.decisions !== undefined) this.decisions = this.#watchAll(store.decisions, 'decide')
    if (store.webhooks !== undefined) this.webhooks = this.#watchAll(store.webhooks, 'webhook')
    const watch = <T>(answer: Promise<T>) => this.#watch('outbox', null, answer)
    if (store.outbox !== undefined) this.outbox = watchOutbox(store.outbox, watch)
  }

  start(keys: KeyIds): Promise<void> {
    return this.#watch('start', null, this.#store.start(keys))
  }

  look(id: RecordId): Promise<Seen | null> {
    return this.#watch('look', id, this.#store.look(id))
  }

  history(id: RecordId): Promise<readonly Attempt[]> {
    return this.#watch('history', id, this.#store.history(id))
  }

  claim(request: ClaimRequest): Promise<Decision> {
    return this.#watch('claim', request.id, this.#store.claim(request))
  }

  complete(owned: Owned, reply: Reply, retentionMs: number): Promise<void> {
    return this.#watch('complete', owned.id, this.#store.complete(owned, reply, retentionMs))
  }

  release(owned: Owned, failure: Failure, retentionMs: number, effectsPossible?: boolean): Promise<void> {
    const released = this.#store.release(owned, failure, retentionMs, effectsPossible)
    return this.#watch('release', owned.id, released)
  }

  forget(owned: Owned): Promise<boolean> {
    return this.#watch('forget', owned.id, this.#store.forget(owned))
  }

  doubt(owned: Owned, failure: Failure, lookInMs?: number): Promise<void> {
    return this.#watch('doubt', owned.id, this.#store.doubt(owned, failure, lookInMs))
  }

  extend(owned: Owned, leaseMs: number): Promise<void> {
    return this.#watch('extend', owned.id, this.#store.extend(owned, leaseMs))
  }

  async transact(
    attempt: TransactionAttempt,
    work: (tx: Tx) => Promise<Reply>,
    crashPoint: CrashPoint,
  ): Promise<TransactionEnd> {
    const transacted = this.#store.transact(attempt, work, crashPoint)
    const end = await this.#hear('transact', attempt.id, transacted)
    const ofStore =
      end.end === 'rerun' || end.end === 'in_doubt' || (end.end === 'failed' && isStoreAway(end.error))
    if (ofStore) this.#tell('transact', attempt.id, end.error)
    else this.#health.answered()
    return end
  }

  settle(attempt: TransactionAttempt): Promise<'committed' | 'rolled_back'> {
    return this.#watch('settle', attempt.id, this.#store.settle(attempt))
  }

  leaveRetryable(attempt: TransactionAttempt, failure: Failure): Promise<boolean> {
    return this.#watch('leave_retryable', attempt.id, this.#store.leaveRetryable(attempt, failure))
  }

  stuck(olderThanMs: number): Promise<Stuck> {
    return this.#watch('stuck', null, this.#store.stuck(olderThanMs))
  }

  get doubtMaxMs(): number {
    return this.#store.doubtMaxMs
  }

  reap(request: ReapRequest): Promise<Reaped> {
    return this.#watch('reap', null, this.#store.reap(request))
  }

  async within(
    tx: Queryable,
    request: ClaimRequest,
    retentionMs: number,
    work: (tx: Queryable, claimed: Run) => Promise<Reply>,
  ): Promise<WithinEnd> {
    let thrownByWork: unknown
    const told = (inner: Queryable, claimed: Run) =>
      work(inner, claimed).catch((error) => {
        thrownByWork = error
        throw error
      })
    try {
      return await this.#store.within(tx, request, retentionMs, told)
    } catch (error) {
      if (error !== thrownByWork) this.#tell('within', request.id, error)
      throw error
    }
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  /** The same part of a store, with the errors of all its methods told. */
  #watchAll<T extends object>(part: T, step: StoreStep): T {
    return new Proxy(part, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== 'function') return method
        return (...given: unknown[]) => this.#watch(step, null, method.apply(target, given))
      },
    })
  }

  async #watch<T>(step: StoreStep, id: RecordId | null, answer: Promise<T>): Promise<T> {
    const answered = await this.#hear(step, id, answer)
    this.#health.answered()
    return answered
  }

  async #hear<T>(step: StoreStep, id: RecordId | null, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      this.#tell(step, id, error)
      throw error
    }
  }

  #tell(step: StoreStep, id: RecordId | null, error: unknown): void {
    if (error instanceof OnlyonceError && OF_THE_CALLER.includes(error.code)) return
    const [code, reason, { message }] = [codeOf(error), reasonOf(error), failureOf(error)]
    this.#observers.emit({ signal: 'store_error', step, code, reason, message, id })
    if (reason !== null) this.#health.failed({ code, reason, message })
  }
}

/** What a store says about its caller, and not about itself. */
const OF_THE_CALLER: readonly string[] = [
  'lease_lost',
  'within_busy',
  'transaction_required',
  'fence_stale',
  'fingerprint_key_unknown',
  // A mistake of the deployment, which is told as such.
  'operation_unknown',
]

/** An error of the work, unless it says that the store was not there for it. */
function isStoreAway(error: unknown): boolean {
  return error instanceof OnlyonceError && STORE_AWAY.includes(error.code)
}

const STORE_AWAY: readonly string[] = [
  'store_unavailable',
  'pool_exhausted',
  'overloaded',
  'statement_not_prepared',
]

/** What runs in a transaction of the caller's is the caller's to tell; the rest is ours. */
function watchOutbox(outbox: OutboxStore, watch: <T>(answer: Promise<T>) => Promise<T>): OutboxStore {
  return {
    emit: (tx, account, events) => outbox.emit(tx, account, events),
    stage: (tx, account, jobs) => outbox.stage(tx, account, jobs),
    inbox: (tx, message, work) => outbox.inbox(tx, message, work),
    register: (destinations) => watch(outbox.register(destinations)),
    forget: (destination) => watch(outbox.forget(destination)),
    route: () => watch(outbox.route()),
    take: (destination, eventsMax, leaseMs) => watch(outbox.take(destination, eventsMax, leaseMs)),
    done: (end) => watch(outbox.done(end)),
    lag: () => watch(outbox.lag()),
    takeJobs: (jobs, countMax, leaseMs) => watch(outbox.takeJobs(jobs, countMax, leaseMs)),
    endJobs: (claimId, ends) => watch(outbox.endJobs(claimId, ends)),
    parked: (request) => watch(outbox.parked(request)),
    retryParked: (account, id) => watch(outbox.retryParked(account, id)),
    clean: (retention) => watch(outbox.clean(retention)),
  }
}
