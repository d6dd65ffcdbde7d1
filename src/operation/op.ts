import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type { Stored } from '../record/value.ts'
import type { Isolation, OpenTransaction, Queryable } from '../store/contract.ts'
import { draftEvent, draftJob, type OutboxStore } from '../store/outbox.ts'
import { GivenSteps } from './given-steps.ts'
import type { Hold } from './hold.ts'
import type { CallStep, EmitOptions, Op, OperationReply, StageOptions, StepResult } from './operation.ts'
import type { OperationRun } from './run.ts'
import { checkAtomic, checkForeign } from './step-options.ts'
import type { Undo } from './undos.ts'

/** What the function of an operation is given: its attempt, without what is not its own business. */
export class OpDoor<Tx> implements Op {
  readonly account: string
  readonly operation: string
  readonly key: string
  readonly #run: OperationRun<Tx>
  readonly #hold: Hold<Tx>
  readonly #steps: GivenSteps
  /** What the step that runs has written to the outbox. */
  #written = new GivenSteps()

  /** `steps` hears of every step that the function is given. */
  constructor(run: OperationRun<Tx>, hold: Hold<Tx>, steps: GivenSteps) {
    ;({ account: this.account, operation: this.operation, key: this.key } = hold.id)
    this.#run = run
    this.#hold = hold
    this.#steps = steps
  }

  get signal(): AbortSignal {
    return this.#hold.signal
  }

  transaction<T>(
    name: string,
    work: (tx: Queryable) => Promise<T>,
    options?: { readonly isolation?: Isolation },
  ): Promise<StepResult<T>> {
    checkAtomic(name, work, options)
    return this.#steps.give(this.#run.transaction(name, this.#hearing(work), options))
  }

  call<T>(name: string, step: CallStep<T>): Promise<Stored<T>> {
    checkForeign(name, step)
    this.#remember(step)
    return this.#steps.give(this.#run.call(name, step))
  }

  compensate(name: string, undo: (tx: Queryable) => Promise<unknown>): void
  compensate(name: string, undo: CallStep<unknown>): void
  compensate(name: string, undo: Undo['undo']): void {
    this.#run.compensate(name, typeof undo === 'function' ? this.#hearing(undo) : undo)
    if (typeof undo !== 'function') this.#remember(undo)
  }

  undo<T>(reply: OperationReply<T>): Promise<OperationReply<T>> {
    return this.#steps.give(this.#run.undo(reply))
  }

  emit(tx: OpenTransaction, type: string, payload: unknown, options: EmitOptions = {}): Promise<void> {
    return this.#written.give(this.#emit(tx, type, payload, options))
  }

  stage(tx: OpenTransaction, job: string, payload: unknown, options: StageOptions = {}): Promise<void> {
    return this.#written.give(this.#stage(tx, job, payload, options))
  }

  /** The function of a step, which fails with what it wrote to the outbox, awaited or not. It may run again, and begins anew then. */
  #hearing<T>(work: (tx: Queryable) => Promise<T>): (tx: Queryable) => Promise<T> {
    return async (tx) => {
      const written = new GivenSteps()
      this.#written = written
      const value = await work(tx)
      await written.throwUnheard()
      return value
    }
  }

  async #emit(tx: OpenTransaction, type: string, payload: unknown, options: EmitOptions): Promise<void> {
    refuseUnknown('op.emit()', options, EMIT)
    const { aggregate } = options
    await this.#outbox.emit(tx, this.account, [draftEvent({ type, payload, aggregate })])
  }

  async #stage(tx: OpenTransaction, job: string, payload: unknown, options: StageOptions): Promise<void> {
    refuseUnknown('op.stage()', options, STAGE)
    await this.#outbox.stage(tx, this.account, [draftJob({ job, payload, ...options })])
  }

  /** Also where its result is durable already: the owner that ends the operation may not have made the call. */
  #remember({ keyLifetimeMs = LIMITS.callKeyLifetimeMs }: CallStep<unknown>): void {
    this.#hold.rememberedFor(keyLifetimeMs)
  }

  get #outbox(): OutboxStore {
    const { outbox } = this.#hold.house.store
    if (outbox !== undefined) return outbox
    throw new OnlyonceError('option_invalid', { detail: 'This store has no outbox: use postgres().' })
  }
}

const EMIT: OptionNames<EmitOptions> = { aggregate: true }
const STAGE: OptionNames<StageOptions> = { key: true, runAfterMs: true }
