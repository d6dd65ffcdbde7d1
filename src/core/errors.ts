import { brandAcrossCopies } from './copies.ts'
import type { ErrorEntry, Executed } from './error-entry.ts'
import { MISTAKES } from './error-mistakes.ts'
import { TABLE } from './error-table.ts'

/** The code of an `OnlyonceError`. A code never changes its meaning. */
export type ErrorCode = keyof typeof TABLE
export type { Executed } from './error-entry.ts'

/**
 * The table itself, for documentation and for boundaries that translate codes.
 *
 * @example
 * const { status, retryable } = ERRORS.key_reused
 */
export const ERRORS: Readonly<Record<ErrorCode, ErrorEntry>> = TABLE

/** Whether a code says that something is wrong with the service itself, which its developer has to repair. */
export function isMistake(code: string): boolean {
  return Object.hasOwn(MISTAKES, code)
}

/** Codes that say that nothing was executed under the key. An error with one of them cannot be made without a proof. */
export type ProvedCode = {
  [Code in ErrorCode]: (typeof TABLE)[Code]['executed'] extends 'no' ? Code : never
}[ErrorCode]

/** All other codes: they claim nothing that would have to be proved. */
export type PlainCode = Exclude<ErrorCode, ProvedCode>

declare const proved: unique symbol

/**
 * That nothing was executed under a key: this attempt has seen its record, or has proved by a claim that there is none, and
 * knows that nothing of the key took effect. Made in protect/proof.ts alone, by the very writes that prove it.
 */
export interface Proof {
  readonly [proved]: true
}

declare const stated: unique symbol

/** The word of the author of some work about that work: good for its own attempt, and for nothing else. */
interface Statement {
  readonly [stated]: true
}

const STATEMENT = {} as Statement

interface ErrorOptions {
  readonly detail?: string
  readonly cause?: unknown
  readonly retryAfterMs?: number
  /** In place of the one in the table, where the author of the work has named another. */
  readonly status?: number
}

/**
 * The only error class that onlyonce throws of its own accord. `instanceof` also knows those of another copy of the package.
 *
 * @example
 * try {
 *   await once.transaction(call, work)
 * } catch (error) {
 *   if (error instanceof OnlyonceError && error.code === 'outcome_unknown') await retryLater()
 *   else throw error
 * }
 */
export class OnlyonceError extends Error {
  override readonly name = 'OnlyonceError'
  readonly code: ErrorCode
  readonly status: number
  readonly retryable: boolean
  /** What the error says about the key: see `Executed`. */
  readonly executed: Executed
  /** After how long it is worth another try; null where that is not known. */
  readonly retryAfterMs: number | null

  constructor(code: PlainCode, options?: ErrorOptions)
  constructor(code: ProvedCode, options: ErrorOptions & { readonly proof: Proof | Statement })
  constructor(code: ErrorCode, options: ErrorOptions & { readonly proof?: Proof | Statement } = {}) {
    const { status, retryable, executed, message: forClients, developer } = ERRORS[code]
    const message = developer ?? forClients
    super(
      options.detail === undefined ? message : `${message} ${options.detail}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.code = code
    this.status = options.status ?? status
    this.retryable = retryable
    // Without a proof it is the word of an author, who knows of one attempt.
    const unproved = options.proof === undefined || options.proof === STATEMENT
    this.executed = executed === 'no' && unproved ? 'not_by_this_request' : executed
    this.retryAfterMs = options.retryAfterMs ?? null
  }
}

brandAcrossCopies(OnlyonceError, 'error', [
  'message',
  'cause',
  'code',
  'status',
  'retryable',
  'executed',
  'retryAfterMs',
])

/**
 * What a handler throws when it knows that nothing happened: the same request may then run again. It speaks for the
 * attempt that throws it; onlyonce finds out whether it is true of the key. `cause` says why: it is for the log and for operators, and
 * no client is told it.
 *
 * @example
 * if (!(await stock.has(item))) throw notExecuted(new Error('out of stock'))
 */
export function notExecuted(cause?: unknown): OnlyonceError {
  return new OnlyonceError('not_executed', { cause, proof: STATEMENT })
}

/**
 * The same error, which says from now on what is proved. Its author, and what catches it by identity, keep their object, unless it is
 * frozen.
 */
export function proveStatement(statement: OnlyonceError & { code: ProvedCode }, proof: Proof): OnlyonceError {
  if (Reflect.set(statement, 'executed', ERRORS[statement.code].executed)) return statement
  // Its author has frozen it.
  return new OnlyonceError(statement.code, { cause: statement, proof })
}

/**
 * What a call of an operation throws when the other side refuses for good what must not be refused, such as an undo: the
 * record is parked for an operator. A decline is a result and is returned.
 *
 * @example
 * if (response.status === 422) throw callRefused(new Error('already settled'))
 */
export function callRefused(cause?: unknown): OnlyonceError {
  return new OnlyonceError('call_refused', { cause })
}
