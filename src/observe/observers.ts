import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { callGuarded } from '../core/thrown.ts'
import { failureOf } from '../record/failure.ts'
import type { Failure, RecordId } from '../record/index.ts'
import { showText } from './fields.ts'
import type { CallTrace, CutOff, Observer, Signal, TracedCall } from './signals.ts'

/** A logger such as `console` has a `trace` too, which would be called with every call and write nothing of use. */
function isObserver(given: Observer | undefined): boolean {
  if (typeof given?.signal === 'function') return true
  return typeof given?.trace === 'function' && !('info' in given)
}

/** All observers of one front door. What they throw stays here: no request is harmed by being observed. */
export class Observers {
  readonly #observers: readonly Observer[]
  readonly #warned = new Set<Observer>()
  /** Operations whose transactions were found unused, and those whose functions ignored an error of a statement. */
  readonly #unused = new Set<string>()
  readonly #ignored = new Set<string>()
  readonly #unattended = new Set<string>()
  readonly #startTold = new Set<string>()
  /** How many records of an operation were parked, without an observer. */
  readonly #parked = new Map<string, number>()

  constructor(given: Observer | readonly Observer[] = []) {
    this.#observers = ([] as readonly Observer[]).concat(given)
    for (const observer of this.#observers) {
      if (!isObserver(observer)) {
        throw new OnlyonceError('option_invalid', {
          detail: 'observe takes observers, for example logTo(logger): objects with signal() or trace().',
        })
      }
    }
  }

  get none(): boolean {
    return this.#observers.length === 0
  }

  emit(signal: Signal): void {
    for (const observer of this.#observers) this.guard(observer, () => observer.signal?.(signal))
  }

  /** Tells those who trace that a call starts. */
  trace(call: TracedCall): readonly ObservedTrace[] {
    return this.#observers.flatMap((observer) => {
      const trace = this.guard(observer, () => observer.trace?.(call))
      return trace === null || trace === undefined ? [] : [{ observer, trace }]
    })
  }

  /** Without an observer each reason why the store cannot be used is a warning of the process, once. */
  startFailed(error: unknown): void {
    if (!this.none) return
    const { code, message } = failureOf(error)
    if (this.#startTold.has(message) || this.#startTold.size >= LIMITS.warnedOperationsMax) return
    this.#startTold.add(message)
    process.emitWarning(`The store cannot be used. ${code}: ${message}`, { type: 'OnlyonceStoreWarning' })
  }

  /**
   * A transaction ended without a statement on its `tx`. Each is a signal; the first of an operation is a warning of the process
   * without an observer, because the retry that writes twice may come years later.
   */
  unusedTx(id: RecordId): void {
    const first = isFirst(this.#unused, id)
    this.emit({ signal: 'tx_unused', protection: 'transaction', id, first })
    if (first && this.none) warnOfTransaction(id, UNUSED_TX)
  }

  /** A statement of a transaction failed, and its function went on: nothing of it can be committed, however often it is tried. */
  ignoredError(id: RecordId, failure: Failure): void {
    const first = isFirst(this.#ignored, id)
    this.emit({ signal: 'tx_error_ignored', protection: 'transaction', id, first, failure })
    if (first && this.none)
      warnOfTransaction(id, `${IGNORED_ERROR} ${failure.code}: ${showText(failure.message)}`)
  }

  /** What may be wrong with how a function uses its transaction, for the one call that finds out. */
  misusedTx(id: RecordId) {
    return {
      unusedTx: () => this.unusedTx(id),
      ignoredError: (failure: Failure) => this.ignoredError(id, failure),
    }
  }

  /**
   * A route met something that is wrong with the service itself. The first of its kind is a warning of the process in any case: the clients
   * of the route are not told what to change.
   */
  mistake(route: string, error: OnlyonceError, first: boolean): void {
    const { code, message } = failureOf(error)
    this.emit({ signal: 'mistake', route, code, message, first })
    if (first) process.emitWarning(`${route}: ${code}: ${message}`, { type: 'OnlyonceMistakeWarning' })
  }

  /**
   * A record waits for an operator, and nothing goes on with it. Without an observer it is a warning of the process: the first of an
   * operation, and then each time that there are ten times as many, so that a flood of them is told in few lines.
   */
  parked(id: RecordId, failure: Failure): void {
    this.emit({ signal: 'parked', id, failure })
    if (!this.none) return
    const full = this.#parked.size >= LIMITS.warnedOperationsMax && !this.#parked.has(id.operation)
    const name = full ? OTHERS : id.operation
    const count = (this.#parked.get(name) ?? 0) + 1
    this.#parked.set(name, count)
    if (!/^10*$/.test(`${count}`)) return
    const which = count === 1 ? 'A record was parked and waits' : `${count} records were parked and wait`
    const why = `${showText(failure.code)}: ${showText(failure.message)}`.replace(/[:.]?\s*$/, '.')
    process.emitWarning(`${name}: ${which} for an operator. The last: ${why} ${LIST_THEM}`, {
      type: 'OnlyonceParkedWarning',
    })
  }

  /** What close() did not wait for. Nothing is told where it waited for everything. */
  cutOff(cutOff: Omit<CutOff, 'signal'>): void {
    const { transactions, handlers, operations } = cutOff
    if (transactions + handlers + operations === 0) return
    this.emit({ signal: 'cut_off', ...cutOff })
    if (!this.none) return
    process.emitWarning(
      `close() waited no longer and cut off work. Transactions: ${transactions}, handlers: ${handlers}, operations: ${operations}.`,
      { type: 'OnlyonceCutOffWarning' },
    )
  }

  /** No worker takes an operation that waits for one. Where nothing observes, the first of each operation is a warning of the process. */
  unattended(id: RecordId): void {
    this.emit({ signal: 'unattended', id })
    if (this.none && isFirst(this.#unattended, id))
      process.emitWarning(`${id.operation}: ${UNATTENDED}`, { type: 'OnlyonceUnattendedWarning' })
  }

  /** Does what concerns one observer. Its first error is told as a warning of the process, the others not at all. */
  guard<T>(observer: Observer, concern: () => T): T | null {
    return callGuarded(concern, (error) => this.#warn(observer, error))
  }

  #warn(observer: Observer, error: unknown): void {
    if (this.#warned.has(observer)) return
    this.#warned.add(observer)
    const { code, message } = failureOf(error)
    process.emitWarning(`An observer failed; its errors are not told again. ${code}: ${message}`, {
      type: 'OnlyonceObserverWarning',
    })
  }
}

/** Whether something is told for the first time of an operation in this process. */
function isFirst(told: Set<string>, { operation }: RecordId): boolean {
  if (told.has(operation) || told.size >= LIMITS.warnedOperationsMax) return false
  told.add(operation)
  return true
}

function warnOfTransaction({ operation }: RecordId, what: string): void {
  process.emitWarning(`${operation}: ${what}`, { type: 'OnlyonceTransactionWarning' })
}

const IGNORED_ERROR =
  'a statement of a transaction failed and its function went on as if it had not, so everything was rolled back. Let the function throw the error, or use a savepoint.'

const OTHERS = 'other operations'
const LIST_THEM =
  "Retries are refused until operator(once).resolve() or unpark(); list() with states: ['parked'] shows them."

const UNATTENDED =
  'A record of this operation has waited long for a worker, and no worker takes it. Its clients hear outcome_pending until one does. Run startWorkers(once, { operations }) in a process that has this operation.'

const UNUSED_TX =
  'a transaction ended without a single statement on its tx. What its function wrote elsewhere is not protected: a retry can write it again. Send the statements on tx. Where strictTx is on, such a call is an error; where it is off, it is completed.'

/** A trace, and whose it is. */
export interface ObservedTrace {
  readonly observer: Observer
  readonly trace: CallTrace
}
