import type { Decision, Failure, RecordId } from '../record/index.ts'
import { LiveCall } from './live-call.ts'
import type { Observers } from './observers.ts'
import type { CallOutcome, Protection } from './signals.ts'

/** The attempt that a caller met: its span can be pointed to. */
export interface Origin {
  readonly fence: number
  readonly trace: string | null
}

/** What a call is told; every outcome of `protect/` has this shape. */
export interface Told {
  readonly outcome: Exclude<CallOutcome, 'failed'>
  readonly origin?: Origin
}

/**
 * What one call tells while it is under way. The rooms that do the work call it at the few places that no other code
 * can see; everything else is told from the outcome.
 */
export interface CallSignals {
  /** The span of this call; null when no observer traces it. */
  readonly trace: string | null
  /** Runs the whole call, inside its span. */
  run<T>(call: () => Promise<T>): Promise<T>
  /** What a claim, or a look, came to. */
  decided(decision: Decision): void
  /** The record was left unknown. */
  doubted(failure: Failure): void
  /** The work failed, and that is stored as its reply. */
  failed(failure: Failure, status: number): void
  /** An operation stopped in this step, and may run again. */
  stopped(failure: Failure, step: string | null): void
  leaseLost(): void
  /** It waits for a flight of this process that was there before. */
  joined(flightTrace: string | null): void
  /** Its own flight has landed, with so many callers. */
  landed(callers: number): void
  told(told: Told): void
}

/** For front doors without an observer: one object for all calls, which does nothing. */
export const NO_SIGNALS: CallSignals = {
  trace: null,
  run: (call) => call(),
  decided() {},
  doubted() {},
  failed() {},
  stopped() {},
  leaseLost() {},
  joined() {},
  landed() {},
  told() {},
}

export function signalsOf(observers: Observers, protection: Protection, id: RecordId): CallSignals {
  return observers.none ? NO_SIGNALS : new LiveCall(observers, protection, id)
}
