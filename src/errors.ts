import { type ErrorEntry, TABLE } from './error-table.ts'

export type ErrorCode = keyof typeof TABLE

/** The table itself, for documentation and for boundaries that translate codes. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorEntry>> = TABLE

/**
 * The only error class that onlyonce throws of its own accord.
 *
 * @example
 * try {
 *   await once.transaction(request, work)
 * } catch (error) {
 *   if (error instanceof OnlyonceError && error.code === 'outcome_unknown') return retryLater()
 *   throw error
 * }
 */
export class OnlyonceError extends Error {
  override readonly name = 'OnlyonceError'
  readonly code: ErrorCode
  readonly status: number
  readonly retryable: boolean
  /** After how long it is worth another try; null where nobody knows. */
  readonly retry_after_ms: number | null

  constructor(code: ErrorCode, options: { detail?: string; cause?: unknown; retry_after_ms?: number } = {}) {
    const { status, retryable, message } = ERRORS[code]
    super(
      options.detail === undefined ? message : `${message} ${options.detail}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.code = code
    this.status = status
    this.retryable = retryable
    this.retry_after_ms = options.retry_after_ms ?? null
  }
}

/**
 * What a handler throws when it knows that nothing happened: the same request may then run again.
 *
 * @example
 * if (!(await stock.has(item))) throw notExecuted(new Error('out of stock'))
 */
export function notExecuted(cause?: unknown): OnlyonceError {
  return new OnlyonceError('not_executed', { cause })
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
