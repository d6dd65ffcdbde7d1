import { OnlyonceError } from '../core/errors.ts'
import type { Result, RunResult } from './door.ts'

/**
 * The value of a result, or an `OnlyonceError` that says why there is none: `in_progress`, `outcome_pending` (the outcome is unknown), `parked` or
 * `key_reused`. For code that does not want to look at every outcome itself. `retryable` says whether the same call may be made again with
 * the same key, `retryAfterMs` when.
 *
 * @example
 * try {
 *   const { id } = unwrap(await once.transaction({ account, operation: 'transfers.create', key, input }, work))
 * } catch (error) {
 *   if (error instanceof OnlyonceError && error.retryable) await retryLater()
 *   else throw error
 * }
 */
export function unwrap<T>(result: Result<T> | RunResult<T>): T {
  switch (result.outcome) {
    case 'executed':
    case 'replayed':
      return result.value
    case 'in_progress':
      throw new OnlyonceError('in_progress', { retryAfterMs: result.retryAfterMs })
    case 'unknown':
      throw new OnlyonceError('outcome_pending', { detail: result.why, retryAfterMs: result.retryAfterMs })
    case 'parked':
      throw new OnlyonceError('parked', { detail: result.why })
    case 'key_reused':
      throw new OnlyonceError('key_reused')
    default:
      result satisfies never
      throw new OnlyonceError('option_invalid', {
        detail: 'unwrap() takes what a call of once has given back. Await it first.',
      })
  }
}
