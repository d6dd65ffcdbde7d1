import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { requireList } from '../core/options.ts'
import { type CallSignals, NO_SIGNALS, type Observers } from '../observe/index.ts'
import type { OperationHouse } from '../operation/attempt.ts'
import type { Operation } from '../operation/operation.ts'
import {
  type OperationRequest,
  type ResumeEnd,
  type ResumeRequest,
  resumeOperation,
  runOperation,
} from '../operation/run-operation.ts'
import type { Running } from '../protect/running.ts'
import type { Outcome } from '../protect/transaction.ts'
import type { CrashPoint, Store } from '../store/contract.ts'
import type { OperationStore } from '../store/operations.ts'
import { Catalog } from './catalog.ts'
import type { OnlyonceOptions } from './door.ts'
import { positive } from './requests.ts'

/** What an engine has for operations: the code that it knows, and when to look at what is in doubt. */
export class Durable<Tx> {
  readonly catalog: Catalog
  readonly #store: Store<Tx>
  readonly #running: Running<Tx>
  readonly #observers: Observers
  readonly #crashPoint: CrashPoint
  readonly #scheduleMs: readonly number[]

  constructor(
    options: Pick<OnlyonceOptions<Tx>, 'operations' | 'reconcileAfterMs'>,
    store: Store<Tx>,
    running: Running<Tx>,
    observers: Observers,
    crashPoint: CrashPoint,
  ) {
    this.catalog = new Catalog(options.operations ?? [])
    this.#store = store
    this.#running = running
    this.#observers = observers
    this.#crashPoint = crashPoint
    this.#scheduleMs = options.reconcileAfterMs ?? LIMITS.reconcileAfterMs
    requireList('reconcileAfterMs', this.#scheduleMs)
    for (const afterMs of this.#scheduleMs) positive('reconcileAfterMs', afterMs)
    if (this.catalog.all.length > 0) this.requireStore('onlyonce({ operations })')
  }

  /** The part of the store that keeps operations. */
  get store(): OperationStore<Tx> {
    this.requireStore('An operation')
    return this.#store.operations!
  }

  /** Throws where the store keeps no operations. `user` is who wants them, for the message. */
  requireStore(user: string): void {
    if (this.#store.operations !== undefined) return
    throw new OnlyonceError('option_invalid', {
      detail: `${user}: this store keeps no operations: use postgres().`,
    })
  }

  /** `begin` is called when the function is about to run: not for a caller that only finds its reply. */
  async run(
    request: OperationRequest,
    operation: Operation<unknown, unknown>,
    signals: CallSignals,
    begin: () => void,
  ): Promise<Outcome> {
    this.catalog.add(operation)
    const house = this.#house(() => signals.leaseLost())
    return await runOperation(house, request, operation, this.catalog.versionsOf, signals, begin)
  }

  /** Goes on with an operation whose caller is gone. Null when another came first. */
  async resume(request: ResumeRequest): Promise<ResumeEnd> {
    return await resumeOperation(
      this.#house(() => {}),
      request,
      this.catalog.versionsOf,
      NO_SIGNALS,
    )
  }

  #house(onLeaseLost: () => void): OperationHouse<Tx> {
    return {
      store: this.#store,
      operations: this.store,
      running: this.#running,
      crashPoint: this.#crashPoint,
      onLeaseLost,
      onParked: (id, failure) => this.#observers.parked(id, failure),
      scheduleMs: this.#scheduleMs,
    }
  }
}
