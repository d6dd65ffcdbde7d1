import { OnlyonceError } from '../core/errors.ts'
import { invalidAnswerOf } from '../core/invalid.ts'
import { failureOf } from '../record/failure.ts'
import type { Decision, Failure, RecordId, Run } from '../record/index.ts'
import type { CallSignals, Told } from './call-signals.ts'
import type { ObservedTrace, Observers } from './observers.ts'
import type { CallEnded, CallOutcome, Protection, Reserved, TraceLink } from './signals.ts'
import { monotonicMs } from './stopwatch.ts'
import { parseTraceParent } from './traceparent.ts'

/** A call with an observer. Gathers what happens and tells it in signals, each fact once. */
export class LiveCall implements CallSignals {
  readonly trace: string | null
  readonly #observers: Observers
  readonly #call: { readonly protection: Protection; readonly id: RecordId }
  readonly #traces: readonly ObservedTrace[]
  readonly #links: TraceLink[] = []
  readonly #beganMs = monotonicMs()
  #run: Run | null = null
  #told: Told | null = null
  #reserved = false
  #joined = false
  #leaseLost = false
  #invalid = false

  constructor(observers: Observers, protection: Protection, id: RecordId) {
    this.#observers = observers
    // A frozen copy: an observer that redacts it in place must not change the key that is claimed.
    this.#call = { protection, id: Object.freeze({ ...id }) }
    this.#traces = observers.trace(this.#call)
    this.trace = firstSpan(this.#traces, observers)
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    this.#observers.emit({ signal: 'call_started', ...this.#call })
    try {
      const value = await this.#inside(call, this.#traces)
      this.#end(null, null)
      return value
    } catch (error) {
      this.#invalid = invalidAnswerOf(error) !== null
      this.#end(codeOf(error), failureOf(error))
      throw error
    }
  }

  decided(decision: Decision): void {
    if (decision.kind === 'vanished' || (decision.kind === 'run' && decision.from === 'in_progress')) {
      this.#observers.emit({ signal: 'zombie_key', ...this.#call })
    }
    // A handler's claim is durable at once. In a transaction it stands, or has given way to another's, at the end.
    const durable = this.#call.protection === 'handler'
    if (decision.kind === 'run') {
      this.#run = decision
      if (durable) this.#reserve(kindOf(decision))
      return
    }
    // What this call began has given way to another's record.
    this.#run = null
    if (decision.kind === 'vanished' && durable) this.doubted(decision.record.failure)
  }

  doubted(failure: Failure): void {
    this.#observers.emit({ signal: 'reconcile_scheduled', id: this.#call.id, failure })
  }

  failed(failure: Failure, status: number): void {
    this.#observers.emit({ signal: 'handler_failed', ...this.#call, failure, status, fence: this.#fence })
  }

  stopped(failure: Failure, step: string | null): void {
    this.#observers.emit({ signal: 'operation_failed', ...this.#call, step, failure })
  }

  /** The heartbeat may notice, and the save after it once more. */
  leaseLost(): void {
    if (this.#leaseLost) return
    this.#leaseLost = true
    this.#observers.emit({ signal: 'lease_lost', ...this.#call, fence: this.#fence })
  }

  joined(flightTrace: string | null): void {
    this.#joined = true
    if (flightTrace !== null) this.#links.push({ to: 'flight', traceparent: flightTrace })
  }

  landed(callers: number): void {
    if (callers > 1) this.#observers.emit({ signal: 'herd', ...this.#call, size: callers })
  }

  told(told: Told): void {
    this.#told = told
    const original = told.origin?.trace ?? null
    if (original !== null) this.#links.push({ to: 'original', traceparent: original })
  }

  /** One span inside the other. An observer that fails, or runs nothing, does not keep the call from running. */
  #inside<T>(call: () => Promise<T>, traces: readonly ObservedTrace[]): Promise<T> {
    const [outer, ...inner] = traces
    if (outer === undefined) return call()
    let running: Promise<T> | undefined
    const run = () => {
      running ??= this.#inside(call, inner)
      return running
    }
    this.#observers.guard(outer.observer, () => unlessItsOwn(outer.trace.run(run), () => running))
    return run()
  }

  #end(code: string | null, failure: Failure | null): void {
    const outcome = this.#outcome()
    const met = this.#met(outcome)
    if (met === 'key_misuse') this.#observers.emit({ signal: 'key_misuse', security: true, ...this.#call })
    else if (met !== null) this.#reserve(met)
    const ended: CallEnded = {
      signal: 'call_ended',
      ...this.#call,
      outcome,
      failure,
      code,
      fence: this.#fence,
      joined: this.#joined,
      durationMs: monotonicMs() - this.#beganMs,
    }
    this.#observers.emit(ended)
    for (const { observer, trace } of this.#traces) {
      this.#observers.guard(observer, () => trace.end(ended, this.#links))
    }
  }

  /** Of the attempt that was met, or of the call's own. */
  get #fence(): number | null {
    return this.#told?.origin?.fence ?? this.#run?.record.fence ?? null
  }

  #outcome(): CallOutcome {
    if (this.#told === null) return this.#invalid ? 'invalid' : 'failed'
    // What the flight executed is a replay to the callers that joined it.
    return this.#joined && this.#told.outcome === 'executed' ? 'replayed' : this.#told.outcome
  }

  /** What the caller met under its key; null where it was never looked up. */
  #met(outcome: CallOutcome): Reserved | 'key_misuse' | null {
    switch (outcome) {
      case 'executed':
        return this.#run === null ? 'created' : kindOf(this.#run)
      case 'replayed':
        return 'replay'
      case 'key_reused':
        return 'key_misuse'
      case 'in_progress':
        return outcome
      case 'unknown':
      case 'parked':
        // Its own attempt may have ended so: then that is what it left, and not what it met.
        return this.#run === null ? outcome : kindOf(this.#run)
      case 'invalid':
      case 'failed':
        // A caller that joined a flight that failed has met another at work, and no more is known.
        if (this.#joined) return 'in_progress'
        return this.#run === null ? null : kindOf(this.#run)
      default:
        return outcome satisfies never
    }
  }

  #reserve(kind: Reserved): void {
    if (this.#reserved) return
    this.#reserved = true
    this.#observers.emit({ signal: 'reserved', ...this.#call, kind, fence: this.#fence })
  }
}

/** What running in a span came to, where that is the observer's own failure and not the error of the call in it. */
async function unlessItsOwn(ran: unknown, running: () => Promise<unknown> | undefined): Promise<void> {
  try {
    await ran
  } catch (error) {
    const errorOfCall = await running()?.then(
      () => undefined,
      (own: unknown) => own,
    )
    if (error !== errorOfCall) throw error
  }
}

/** What goes into the record has to be a traceparent: the database may refuse other texts, and the call with them. */
function firstSpan(traces: readonly ObservedTrace[], observers: Observers): string | null {
  for (const { observer, trace } of traces) {
    const traceparent: unknown = observers.guard(observer, () => trace.traceparent)
    if (typeof traceparent === 'string' && parseTraceParent(traceparent) !== null) return traceparent
  }
  return null
}

/** An expired record counts as none: its key is new again. */
function kindOf({ from }: Run): Reserved {
  return from === 'none' || from === 'expired' ? 'created' : 'failed_retry'
}

/** A code that can be a label: ours, or none in particular. What work throws may have a code of any kind. */
function codeOf(error: unknown): string {
  return error instanceof OnlyonceError ? error.code : 'thrown'
}
