import { OnlyonceError } from '../core/errors.ts'
import { provesNothingDone, saysInvalid } from '../protect/proof.ts'
import { failureOf } from '../record/failure.ts'
import type { Reply } from '../record/index.ts'
import { encodeThrown } from '../record/value.ts'
import type { Isolation, Queryable } from '../store/contract.ts'
import type { Written } from '../store/operations.ts'
import { callSiteOf } from './call-site.ts'
import { callForeign, tooShortFor } from './foreign.ts'
import { GivenSteps } from './given-steps.ts'
import type { Hold } from './hold.ts'
import { OpDoor } from './op.ts'
import { isCallOf, passedBy } from './open-call.ts'
import { type CallStep, encodeResult, type Op, type Operation, OperationReply } from './operation.ts'
import { runStep } from './step.ts'
import { checkForeign } from './step-options.ts'
import { type Entry, entryOf, resultOf, type StepKind, type Steps } from './steps.ts'
import {
  behind,
  changed,
  isOurs,
  isStopped,
  type RunEnd,
  Stopped,
  stopOf,
  stopOfCall,
  unasked,
} from './stop.ts'
import { replyOfUndoing, type Undo, undoingOf, undosLeft } from './undos.ts'

type FunctionEnd = { readonly reply: Reply } | { readonly error: unknown }

/** One attempt at an operation: runs its function past what is durable already, and makes the rest durable. */
export class OperationRun<Tx> implements Pick<Op, 'transaction' | 'call' | 'undo'> {
  readonly #hold: Hold<Tx>
  readonly #steps: Steps
  readonly #undos: Undo[] = []
  /** Whether a reply lets the same request run again, for its status, where nothing was done outside. */
  readonly #notNow: (status: number) => boolean
  #stopped: Stopped | null = null
  #completed: Reply | null = null
  #inStep = false
  #over = false
  #maybeSent: boolean
  #maybeOvertaken = true
  #failed: string | null = null

  constructor(hold: Hold<Tx>, steps: Steps, notNow: (status: number) => boolean) {
    this.#hold = hold
    this.#steps = steps
    this.#notNow = notNow
    this.#maybeSent = hold.resumed
    // An earlier version of the library keeps the step of a call that has its result by now.
    if (steps.entries.some(({ name }) => name === hold.open.waitsStep)) hold.proved()
  }

  /** An earlier attempt may have made a call of which this one has learned nothing. */
  get unproved(): boolean {
    if (this.#steps.untouched) return this.#maybeSent
    return this.#maybeOvertaken && this.#steps.overtaken
  }

  async run({ run }: Operation<unknown, unknown>, input: unknown): Promise<RunEnd> {
    let end: FunctionEnd
    try {
      const steps = new GivenSteps()
      const value = await this.#hold.inTime(run(new OpDoor(this, this.#hold, steps), input))
      // Where one still runs, the function has forgotten to await it: see below.
      if (!this.#inStep) await steps.throwUnheard()
      end = { reply: this.#completed ?? encodeResult(value) }
    } catch (error) {
      end = { error }
    }
    this.#over = true
    try {
      return await this.#finish(end)
    } catch (error) {
      if (isStopped(error) && error.stop.why !== 'undo') return error.stop
      return { why: 'lost', error }
    }
  }

  async #finish(end: FunctionEnd): Promise<RunEnd> {
    if (this.#completed !== null) return { why: 'completed', reply: this.#completed }
    const stop = this.#stopped?.stop
    if (stop !== undefined && stop.why !== 'undo') return stop
    const known = 'error' in end && end.error instanceof OnlyonceError ? end.error : null
    // Before the next: when the time is over, a step may well be under way.
    if (known?.code === 'lease_lost') return { why: 'lost', error: known }
    if (this.#inStep) throw new OnlyonceError('steps_overlap', { detail: 'A step was not awaited.' })
    if (known?.code === 'operation_changed') return changed(known.message)
    const { unvisited, undoing } = this.#steps
    if (unvisited !== null) {
      // A function that throws before it comes to what is durable has said nothing about it, and not told all undos yet.
      return 'error' in end ? { why: 'failed', error: end.error } : changed(unasked(unvisited))
    }
    this.#stopped = null
    if (undoing !== null) return await this.#undoAll(undoing)
    if ('reply' in end)
      return this.#isNotNow(end.reply) ? { why: 'not_now', ...end } : this.#complete(end.reply)
    const { error } = end
    if (this.#steps.count === 0 && !this.unproved && saysInvalid(error)) return { why: 'invalid', error }
    // It was not executed, the store is away for a moment, or a call was not even asked about: no time to undo.
    const passing = provesNothingDone(error) || isOurs(error) || this.unproved
    if (this.#undos.length === 0 || passing) return { why: 'failed', error }
    return await this.#beginUndo(encodeThrown(error))
  }

  transaction<T>(name: string, work: (tx: Queryable) => Promise<T>, options?: { isolation?: Isolation }) {
    const isolation = options?.isolation ?? 'serializable'
    return this.#step(name, 'atomic', () => this.#atomic(name, 'atomic', work, isolation)) as never
  }

  call<T>(name: string, step: CallStep<T>) {
    return this.#step(name, 'foreign', () => this.#foreign(name, 'foreign', step)) as never
  }

  compensate(name: string, undo: Undo['undo']): void {
    this.#refuseLate(name)
    try {
      this.#steps.reserve(name)
      if (typeof undo !== 'function') checkForeign(name, undo)
    } catch (error) {
      // Undoing without this one would leave what was just done.
      throw this.#stop({ why: 'failed', error })
    }
    this.#undos.push({ name, undo })
  }

  async undo<T>(reply: OperationReply<T>): Promise<OperationReply<T>> {
    this.#refuseLate('undo')
    if (this.#inStep) throw this.#overlap()
    const { unvisited } = this.#steps
    if (unvisited !== null) throw this.#stop(changed(unasked(unvisited)))
    // On the way back already: this is where it began.
    if (this.#steps.undoing !== null) throw this.#stop({ why: 'undo' })
    this.#refusePassingBy('undo')
    const encoded = encodeResult(reply)
    this.#inStep = true
    const end = await this.#beginUndo(encoded)
      .catch((error) => {
        throw isStopped(error) ? error : this.#stop({ why: 'lost', error })
      })
      .finally(() => {
        this.#inStep = false
      })
    if (end.why !== 'completed') throw this.#stop(end)
    return reply
  }

  async #step(name: string, kind: StepKind, run: () => Promise<unknown>): Promise<unknown> {
    this.#refuseLate(name)
    if (this.#inStep) throw this.#overlap()
    if (this.#failed !== null) throw this.#stop({ why: 'failed', error: behind(name, this.#failed) })
    const entry = this.#enter(name, kind)
    if (entry !== null) return resultOf(entry)
    // What was begun to be undone never goes forward again.
    if (this.#steps.undoing !== null) throw this.#stop({ why: 'undo' })
    this.#refusePassingBy(name, kind)
    // No attempt came past this step without leaving it durable.
    if (kind === 'atomic') this.#provedUnsent()
    this.#inStep = true
    try {
      return await run()
    } finally {
      this.#inStep = false
    }
  }

  #provedUnsent(): void {
    if (this.#steps.untouched) this.#maybeSent = false
    else this.#maybeOvertaken = false
  }

  /** An attempt that goes on behind a call in doubt would leave it in doubt for ever, or make it twice. */
  #refusePassingBy(name: string, kind?: StepKind): void {
    const { open, attempt } = this.#hold
    if (open.waitsFor === null) return
    const isCall = kind === 'foreign' || kind === 'undo_foreign'
    if (!isCall || !isCallOf(name, open, attempt)) throw this.#stop(passedBy(open, name))
  }

  /** What goes on behind the end has no record any more that would remember it. */
  #refuseLate(name: string): void {
    if (this.#stopped !== null) throw this.#stopped
    if (!this.#over && this.#completed === null) return
    throw new OnlyonceError('option_invalid', { detail: `${name} comes after the end of the operation.` })
  }

  /** The step that runs may be a call: nothing is proved about it, so nothing is written. */
  #overlap(): Stopped {
    return this.#stop({ why: 'lost', error: new OnlyonceError('steps_overlap') })
  }

  #enter(name: string, kind: StepKind): Entry | null {
    try {
      return this.#steps.enter(name, kind)
    } catch (error) {
      const isOther = error instanceof OnlyonceError && error.code === 'operation_changed'
      throw isOther ? this.#stop(changed(error.message)) : error
    }
  }

  async #atomic<T>(
    name: string,
    kind: 'atomic' | 'undo_atomic',
    work: (tx: Queryable) => Promise<T>,
    isolation: Isolation,
  ): Promise<unknown> {
    let value: unknown
    let entry: Entry | null = null
    const step = async (tx: Tx): Promise<Written> => {
      value = await work(tx as Queryable)
      if (kind === 'atomic' && value instanceof OperationReply) {
        const reply = encodeResult(value)
        if (this.#isNotNow(reply)) throw this.#stop({ why: 'not_now', reply })
        return { state: 'completed', reply, count: this.#steps.count + 1, last: name }
      }
      entry = entryOf(name, kind, value)
      return { state: 'in_progress', points: this.#steps.points([entry]) }
    }
    const end = await this.#guarded(() => runStep(this.#hold, isolation, step))
    switch (end.end) {
      case 'committed':
        if (end.written.state === 'completed') {
          this.#completed = end.written.reply
          return value
        }
        this.#steps.add(entry!)
        this.#steps.committed()
        return resultOf(entry!)
      case 'stop':
        throw this.#stop(end.stop)
      case 'failed':
        this.#failed = name
        // What a call has brought must not be lost with the step that was to use it.
        if (this.#steps.pending && this.#stopped === null) await this.#commit()
        throw end.error
      default:
        return end satisfies never
    }
  }

  async #foreign<T>(name: string, kind: 'foreign' | 'undo_foreign', step: CallStep<T>): Promise<unknown> {
    const maybeSent = this.unproved
    if (this.#steps.pending) await this.#commit()
    await this.#guarded(() => this.#hold.claimForCall())
    const site = callSiteOf(this.#hold, name, maybeSent, kind)
    // A wrong option of this owner is nothing that the function says: what was done is not undone for it.
    const short = maybeSent ? null : tooShortFor(step, site)
    if (short !== null) throw this.#stop({ why: 'failed', error: short })
    const end = await this.#guarded(() => callForeign(step, site))
    if (end.end === 'result') return this.#took(name, kind, end.value, site.key)
    if (end.end === 'not_executed') {
      this.#provedUnsent()
      this.#hold.proved()
    }
    if (end.end === 'void_happened' && end.made !== null) this.#took(name, kind, end.made.value, site.key)
    throw this.#stop(stopOfCall(end, site.key, name))
  }

  /** It happened. A result that cannot be kept is no reason to forget that. */
  #took(name: string, kind: StepKind, value: unknown, key: string): unknown {
    try {
      const entry = entryOf(name, kind, value)
      this.#steps.add(entry)
      this.#hold.proved()
      return resultOf(entry)
    } catch (error) {
      throw this.#stop({
        why: 'doubt',
        failure: failureOf(error),
        call: { waitsFor: key, waitsStep: name },
      })
    }
  }

  /** From here on it never goes forward again: that is durable before anything is undone. */
  async #beginUndo(reply: Reply): Promise<RunEnd> {
    const entry = undoingOf(reply)
    this.#steps.add(entry)
    await this.#commit()
    return await this.#undoAll(entry)
  }

  async #undoAll(undoing: Entry): Promise<RunEnd> {
    const left = undosLeft(this.#undos, this.#steps.undone)
    if ('why' in left) return left
    try {
      for (const { name, undo } of left) {
        this.#steps.at = name
        this.#refusePassingBy(name, typeof undo === 'function' ? 'undo_atomic' : 'undo_foreign')
        if (typeof undo === 'function') await this.#atomic(name, 'undo_atomic', undo, 'serializable')
        else await this.#foreign(name, 'undo_foreign', undo)
      }
    } catch (error) {
      if (isStopped(error)) throw error
      return { why: 'failed', error }
    }
    return await this.#complete(replyOfUndoing(undoing))
  }

  async #complete(reply: Reply): Promise<RunEnd> {
    const { open } = this.#hold
    if (open.waitsFor !== null) return passedBy(open, null)
    const { count, last } = this.#steps
    await this.#guarded(() => this.#hold.write({ state: 'completed', reply, count, last }))
    this.#completed = reply
    return { why: 'completed', reply }
  }

  /** Makes results of calls durable by themselves. */
  async #commit(): Promise<void> {
    await this.#guarded(() => this.#hold.write({ state: 'in_progress', points: this.#steps.points() }))
    this.#steps.committed()
  }

  /** What goes wrong with the record is not for the function to handle. */
  async #guarded<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (error instanceof OnlyonceError && error.code === 'option_invalid') throw error
      throw this.#stop(stopOf(error))
    }
  }

  /** What was done outside stands, so "not now" is an answer like any other then; a failure is still none. */
  #isNotNow({ status }: Reply): boolean {
    return this.#notNow(status) && (status >= 500 || !this.#steps.foreign)
  }

  #stop(stop: Stopped['stop']): Stopped {
    this.#stopped ??= new Stopped(stop)
    return this.#stopped
  }
}
