import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { isOfClass } from '../core/thrown.ts'
import { unproved } from '../protect/proof.ts'
import { failureOf } from '../record/failure.ts'
import type { Failure, Reply } from '../record/index.ts'
import type { Waiting } from '../store/operations.ts'
import type { CallEnd } from './asking.ts'

/** The call that a record waits for, and its step. */
export type CallInDoubt = Pick<Waiting, 'waitsFor' | 'waitsStep'>
export const NO_CALL: CallInDoubt = { waitsFor: null, waitsStep: null }

/** Why an attempt stops before its function has come to an end. */
export type Stop =
  /** Another came first, or holds the key: look again. */
  | { readonly why: 'conflict' | 'busy' }
  /** The record has another owner, or that is not known: nothing more is written. */
  | { readonly why: 'lost'; readonly error: unknown }
  /** The outcome of a call cannot be known now. */
  | {
      readonly why: 'doubt'
      readonly failure: Failure
      readonly call: CallInDoubt
      /** When it is looked at, once that is written down. */
      readonly lookInMs?: number
    }
  /** It did not work this time: the next owner goes on from the last durable step. */
  | { readonly why: 'failed'; readonly error: unknown }
  /** No attempt can go on: an operator decides. */
  | { readonly why: 'parked'; readonly failure: Failure; readonly call?: CallInDoubt }
  /** The request itself is wrong, and nothing was done. */
  | { readonly why: 'invalid'; readonly error: OnlyonceError }
  /** The answer is given, and says that the same request may run again. */
  | { readonly why: 'not_now'; readonly reply: Reply }

/** How an attempt ended. `reply` is durable. */
export type RunEnd = { readonly why: 'completed'; readonly reply: Reply } | Stop

/** Leaves the function of an operation. A function that catches it gets it again from every other step. */
export class Stopped extends Error {
  readonly stop: Stop | { readonly why: 'undo' }

  constructor(stop: Stop | { readonly why: 'undo' }) {
    super(`The operation stops here: ${stop.why}.`)
    this.stop = stop
  }
}

export function isStopped(error: unknown): error is Stopped {
  return isOfClass(error, Stopped)
}

export function unasked(step: string): string {
  return `The step ${step} is durable, and the code never asks for it.`
}

/** The code does not fit what is durable. */
export function changed(message: string): Stop {
  return {
    why: 'parked',
    failure: { code: 'operation_changed', message: message.slice(0, LIMITS.errorMessageLengthMax) },
  }
}

/** That a step threw is not durable: another attempt may find that it works, and would know nothing of a call made since. */
export function behind(name: string, failed: string): OnlyonceError {
  const detail = `${name} comes after ${failed}, which threw. Return from a step what later ones depend on.`
  return new OnlyonceError('option_invalid', { detail })
}

/** What a call of a step that has no result, or one too many, means for the attempt. */
export function stopOfCall(end: Exclude<CallEnd, { end: 'result' }>, key: string, step: string): Stop {
  const call = (waitsFor: string | null) => ({ waitsFor, waitsStep: step })
  switch (end.end) {
    case 'not_executed':
      return { why: 'failed', error: end.error }
    case 'in_doubt':
      return { why: 'doubt', failure: end.failure, call: call(end.about ?? key) }
    case 'refused':
      return { why: 'parked', failure: failureOf(end.error), call: call(key) }
    case 'void_happened':
      return { why: 'parked', failure: end.failure, call: call(end.waitsFor) }
    default:
      return end satisfies never
  }
}

/** Carries a stop through code that throws. */
export class Interrupted extends Error {
  readonly stop: Stop

  constructor(stop: Stop) {
    super(`The operation stops here: ${stop.why}.`)
    this.stop = stop
  }
}

export function isInterrupted(error: unknown): error is Interrupted {
  return isOfClass(error, Interrupted)
}

/** What an error of the record, or of the store, means for the attempt. */
export function stopOf(error: unknown): Stop {
  if (isInterrupted(error)) return error.stop
  // A driver's own error says that the server has refused the record, and its text is not for clients.
  if (!(error instanceof OnlyonceError)) return { why: 'failed', error: unproved(error, 'not_applied') }
  const lost = LOST.includes(error.code)
  return lost ? { why: 'lost', error } : { why: 'failed', error }
}

/** Whether the function of an operation has nothing to do with an error: it says who owns the record, or that the store is away. */
export function isOurs(error: unknown): boolean {
  return error instanceof OnlyonceError && OURS.includes(error.code)
}

/** Errors that say who owns the record, or that it is not known what was written: nothing more may be. */
const LOST: readonly string[] = ['lease_lost', 'outcome_unknown']

const OURS: readonly string[] = [
  ...LOST,
  'store_unavailable',
  'pool_exhausted',
  'overloaded',
  'deadline_exceeded',
  'transaction_idle',
  'serialization_failed',
  'statement_not_prepared',
]
