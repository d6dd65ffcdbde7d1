import type { Attempt, Decision, Failure, OnceRecord, RecordId, Reply, Stuck } from '../record/index.ts'
import type { Seal } from '../seal/index.ts'
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
} from './contract.ts'
import type { DecideRequest, DecisionStore } from './decisions.ts'
import type { LockStore } from './locks.ts'
import type { OperationStore } from './operations.ts'
import type { OutboxStore } from './outbox.ts'
import type { RecoveryStore } from './recovery.ts'
import { sealedOperations } from './sealed-operations.ts'
import { sealedWebhooks } from './sealed-webhooks.ts'
import type { WebhookStore } from './webhooks.ts'

/** Any store, with replies sealed on their way in and opened on their way out. Nothing else is changed. */
export function sealed<Tx>(store: Store<Tx>, seal: Seal): Store<Tx> {
  return new SealedStore(store, seal)
}

class SealedStore<Tx> implements Store<Tx> {
  /** Events, jobs and messages are for others to read: they are not sealed. */
  declare readonly outbox?: OutboxStore
  readonly #inner: Store<Tx>
  readonly #seal: Seal

  readonly operations?: OperationStore<Tx>
  readonly webhooks?: WebhookStore

  constructor(inner: Store<Tx>, seal: Seal) {
    this.#inner = inner
    if (inner.outbox !== undefined) this.outbox = inner.outbox
    this.#seal = seal
    if (inner.operations !== undefined) this.operations = sealedOperations(inner.operations, seal)
    if (inner.webhooks !== undefined) this.webhooks = sealedWebhooks(inner.webhooks, seal)
  }

  start(keys: KeyIds): Promise<void> {
    return this.#inner.start(keys)
  }

  async look(id: RecordId): Promise<Seen | null> {
    const seen = await this.#inner.look(id)
    return seen === null ? null : { record: this.#opening(id, seen.record), now: seen.now }
  }

  history(id: RecordId): Promise<readonly Attempt[]> {
    return this.#inner.history(id)
  }

  async claim(request: ClaimRequest): Promise<Decision> {
    return this.#openingReplay(request.id, await this.#inner.claim(request))
  }

  complete(owned: Owned, reply: Reply, retentionMs: number): Promise<void> {
    return this.#inner.complete(owned, this.#seal.sealReply(owned.id, reply), retentionMs)
  }

  release(owned: Owned, failure: Failure, retentionMs: number, effectsPossible?: boolean): Promise<void> {
    return this.#inner.release(owned, failure, retentionMs, effectsPossible)
  }

  forget(owned: Owned): Promise<boolean> {
    return this.#inner.forget(owned)
  }

  doubt(owned: Owned, failure: Failure, lookInMs?: number): Promise<void> {
    return this.#inner.doubt(owned, failure, lookInMs)
  }

  extend(owned: Owned, leaseMs: number): Promise<void> {
    return this.#inner.extend(owned, leaseMs)
  }

  async transact(
    attempt: TransactionAttempt,
    work: (tx: Tx) => Promise<Reply>,
    crashPoint: CrashPoint,
  ): Promise<TransactionEnd> {
    // Nothing is sealed without keys: then the work need not be wrapped, nor waited for, once more.
    if (this.#seal.keyIds.length === 0) return this.#inner.transact(attempt, work, crashPoint)
    const sealing = this.#sealing(attempt.id, work)
    const end = await this.#inner.transact(attempt, sealing.work, crashPoint)
    const hasReply = end.end === 'committed' || end.end === 'in_doubt'
    return hasReply ? { ...end, reply: sealing.plain ?? end.reply } : end
  }

  settle(attempt: TransactionAttempt): Promise<'committed' | 'rolled_back'> {
    return this.#inner.settle(attempt)
  }

  leaveRetryable(attempt: TransactionAttempt, failure: Failure): Promise<boolean> {
    return this.#inner.leaveRetryable(attempt, failure)
  }

  stuck(olderThanMs: number): Promise<Stuck> {
    return this.#inner.stuck(olderThanMs)
  }

  get doubtMaxMs(): number {
    return this.#inner.doubtMaxMs
  }

  reap(request: ReapRequest): Promise<Reaped> {
    return this.#inner.reap(request)
  }

  async within(
    tx: Queryable,
    request: ClaimRequest,
    retentionMs: number,
    work: Parameters<Store<Tx>['within']>[3],
  ): Promise<WithinEnd> {
    const sealing = this.#sealing(request.id, work)
    const end = await this.#inner.within(tx, request, retentionMs, sealing.work)
    switch (end.end) {
      case 'completed':
        return { end: 'completed', reply: sealing.plain ?? end.reply }
      case 'decided':
        return { end: 'decided', decision: this.#openingReplay(request.id, end.decision) }
      case 'busy':
        return end
      default:
        return end satisfies never
    }
  }

  /** A reply that was found is sealed like any other. */
  get recovery(): RecoveryStore {
    const inner = this.#inner.recovery
    return {
      unattended: (request) => inner.unattended(request),
      vanish: (seen, graceMs, retentionMs) => inner.vanish(seen, graceMs, retentionMs),
      takeLook: (seen, holdMs) => inner.takeLook(seen, holdMs),
      endLook: (look, end, retentionMs) => {
        const sealed = end.end === 'found' ? { ...end, reply: this.#seal.sealReply(look.id, end.reply) } : end
        return inner.endLook(look, sealed, retentionMs)
      },
    }
  }

  get locks(): LockStore | undefined {
    return this.#inner.locks
  }

  /** A reply that an operator gives is sealed like any other. */
  get decisions(): DecisionStore | undefined {
    const inner = this.#inner.decisions
    if (inner === undefined) return undefined
    return {
      list: (request) => inner.list(request),
      summary: (id) => inner.summary(id),
      audit: (id) => inner.audit(id),
      lookWithin: (tx, id) => inner.lookWithin(tx, id),
      decide: (request, tx) => inner.decide({ ...request, to: this.#sealingStep(request) }, tx),
    }
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  /** Work whose reply is sealed for the store, while what it gave itself is kept for the caller. */
  #sealing<Given extends unknown[]>(id: RecordId, work: (...given: Given) => Promise<Reply>) {
    const sealing = {
      plain: null as Reply | null,
      work: async (...given: Given): Promise<Reply> => {
        sealing.plain = await work(...given)
        return this.#seal.sealReply(id, sealing.plain)
      },
    }
    return sealing
  }

  #sealingStep({ id, to }: DecideRequest): DecideRequest['to'] {
    return to.state === 'completed' ? { ...to, reply: this.#seal.sealReply(id, to.reply) } : to
  }

  #openingReplay<D extends Decision>(id: RecordId, decision: D): D {
    return decision.kind === 'replay' ? { ...decision, record: this.#opening(id, decision.record) } : decision
  }

  /**
   * A sealed reply is opened when it is read, and not before. A caller that only wants to know the state, such as
   * `explain()`, and one that finds another's fingerprint need no key, and are not kept from its answer by a
   * seal that is broken.
   */
  #opening<R extends OnceRecord>(id: RecordId, record: R): R {
    if (record.state !== 'completed' || record.reply.sealedBy === null) return record
    const { reply, ...rest } = record
    const seal = this.#seal
    return {
      ...rest,
      get reply() {
        return seal.openReply(id, reply)
      },
    } as R
  }
}
