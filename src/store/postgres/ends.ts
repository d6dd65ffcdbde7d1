import { OnlyonceError } from '../../core/errors.ts'
import { isOfClass, memberOf } from '../../core/thrown.ts'
import type { TransactionEnd } from '../contract.ts'
import { classify, meaningOfError, sqlState } from './classify.ts'

/** What is known about a transaction when it comes to tell its end. */
export interface Facts {
  /** The last error of a statement of the work that no savepoint has undone. */
  readonly failure: unknown
  /** The work got a statement through that ended the transaction. */
  readonly endedInside: boolean
  /** Why the connection is gone; null while it lives. */
  readonly lost: unknown
  readonly translate: (error: unknown) => unknown
}

/** COMMIT has not been sent and ROLLBACK has been tried: unless the work itself committed, nothing happened. */
export function endOfFailedWork(error: unknown, facts: Facts): TransactionEnd<never> {
  const { failure, endedInside: wasEndedInside, translate } = facts
  if (wasEndedInside) return { end: 'ended_inside', error: endedInside(error) }
  if (classify(failure) === 'not_owner') return lost()
  if (classify(failure) === 'moved') return { end: 'rerun', error: failure }
  if (facts.lost !== null) return endOfLoss(error, facts)
  if (isCollision(failure) || isCollision(error)) return { end: 'rerun', error }
  const trouble = troubleOf(failure, translate)
  if (trouble !== null) return { end: 'failed', error: isCausedBy(error, failure) ? trouble : error, trouble }
  if (sqlState(failure) === null || !isCausedBy(error, failure)) return { end: 'failed', error }
  switch (classify(failure)) {
    // Often it is a duplicate elsewhere that holds the row: a caller that waits for it waits for the same request.
    case 'lock_wait':
      return { end: 'busy' }
    case 'not_prepared':
    case 'stale_plan':
      return { end: 'rerun', error: translate(failure) }
    default:
      return failedBy(failure, error, translate)
  }
}

/** A statement of the work was refused. What the work makes of that, unless it names it as its cause, is its own. */
function failedBy(failure: unknown, thrown: unknown, translate: Facts['translate']): TransactionEnd<never> {
  switch (meaningOfError(failure)) {
    case 'passing':
      return { end: 'failed', error: translate(failure) }
    case 'mistake':
      return { end: 'failed', error: thrown, meant: false }
    default:
      return { end: 'failed', error: thrown }
  }
}

/**
 * A statement of the work got no connection, or came to a server that could not do it now: the store was not there for it. An error
 * of its own, so that it is told from the one that the work was given and may have thrown on.
 */
function troubleOf(failure: unknown, translate: Facts['translate']): OnlyonceError | null {
  if (failure === null) return null
  const known = sqlState(failure) === null ? failure : translate(failure)
  const code = known instanceof OnlyonceError ? AWAY.find((one) => one === known.code) : undefined
  return code === undefined ? null : new OnlyonceError(code, { cause: (known as Error).cause ?? failure })
}

const AWAY = ['store_unavailable', 'pool_exhausted', 'overloaded'] as const

/** Data layers wrap what the driver throws. */
function isCausedBy(error: unknown, failure: unknown): boolean {
  let cause = error
  for (let depth = 0; depth < CAUSES_MAX; depth += 1) {
    if (cause === failure) return true
    cause = isOfClass(cause, Error) ? memberOf(cause, 'cause') : undefined
  }
  return false
}

const CAUSES_MAX = 8

/**
 * The server has ended the transaction because it was silent, or took too long, and the connection with it. A process that reads this late takes it for
 * the answer to the statement that it has sent meanwhile, and hears of the connection only that it is gone.
 */
export function endByServer(...errors: readonly unknown[]): OnlyonceError | null {
  for (const cause of errors) {
    const fault = classify(cause)
    if (fault === 'idle') return new OnlyonceError('transaction_idle', { cause })
    if (fault === 'timed_out') return new OnlyonceError('deadline_exceeded', { cause })
  }
  return null
}

function endOfLoss(error: unknown, { failure, lost, translate }: Facts): TransactionEnd<never> {
  if (lost instanceof OnlyonceError) return { end: 'failed', error: lost }
  const byServer = endByServer(lost, failure)
  if (byServer !== null) return { end: 'failed', error: byServer }
  switch (classify(lost)) {
    // pg gave up waiting (query_timeout of the pool): the work is told so, and means nothing by throwing it on.
    case 'unanswered': {
      const trouble = new OnlyonceError('store_unavailable', { cause: lost })
      return { end: 'failed', error: isCausedBy(error, lost) ? trouble : error, trouble }
    }
    default:
      return { end: 'rerun', error: translate(lost) }
  }
}

/** The server refused to finish, still answers, and so has rolled back. */
export function endOfRefusal(error: unknown, { failure, translate }: Facts): TransactionEnd<never> {
  if (classify(failure) === 'not_owner') return lost()
  if (classify(failure) === 'moved') return { end: 'rerun', error: failure }
  switch (classify(error)) {
    case 'not_owner':
      return lost()
    case 'moved':
      return { end: 'rerun', error }
    case 'lock_wait':
      return { end: 'busy' }
    case 'collision':
      return { end: 'rerun', error }
    case 'not_prepared':
      return { end: 'rerun', error: translate(error) }
    // A statement failed before, and the work did not say so.
    case 'aborted':
      return isWorthRerun(failure)
        ? { end: 'rerun', error: translate(failure) }
        : wentOn(failedBy(failure, failure ?? error, translate))
    default:
      return failedBy(error, error, translate)
  }
}

function wentOn(end: TransactionEnd<never>): TransactionEnd<never> {
  return end.end === 'failed' ? { ...end, wentOn: true } : end
}

function lost(): TransactionEnd<never> {
  return { end: 'failed', error: new OnlyonceError('lease_lost') }
}

function endedInside(error: unknown): OnlyonceError {
  if (error instanceof OnlyonceError && error.code === 'transaction_ended_inside') return error
  return new OnlyonceError('transaction_ended_inside', { cause: error })
}

function isWorthRerun(failure: unknown): boolean {
  return sqlState(failure) !== null && ['collision', 'not_prepared', 'stale_plan'].includes(classify(failure))
}

function isCollision(error: unknown): boolean {
  return sqlState(error) !== null && classify(error) === 'collision'
}
