/** Calls on a transaction of the caller's that a function did not await, and that never end. */
import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { atMost } from '../../core/retry.ts'
import type { Queryable } from '../contract.ts'
import type { Transaction } from './open-transaction.ts'
import { isInside } from './sql/columns.ts'

/**
 * What every call on the transaction is told from then on, the one that was left open too. No savepoint is released or rolled back to any more: the
 * open call has one behind ours, and a ROLLBACK TO would meet that one and give the transaction back to it.
 */
export function leaveOpen(transaction: Transaction, waitedMs: number): OnlyonceError {
  const detail = `A call that a function did not await has not ended after ${waitedMs} ms. The transaction is aborted: its COMMIT rolls back.`
  transaction.leftOpen ??= new OnlyonceError('deadline_exceeded', { detail })
  return transaction.leftOpen
}

/**
 * Gives what a call on a transaction came to. Where a call inside was left open, the transaction is aborted: the caller must not commit a part of
 * it, and what the open call still sends must not stand. Each call around does so again, because its function may have rolled back to a savepoint of
 * its own.
 */
export async function abortedIfLeftOpen<T>(
  client: Queryable,
  transaction: Transaction,
  done: Promise<T>,
): Promise<T> {
  try {
    const value = await done
    if (transaction.leftOpen === null) return value
  } catch (error) {
    if (transaction.leftOpen === null) throw error
  }
  // The statement stands in front of every later one of the connection, also where its answer is not waited for.
  const abort = async () => await client.query(ABORT, [transaction.xid])
  await atMost(
    LIMITS.statementMaxMs,
    abort().catch(() => {}),
  )
  throw transaction.leftOpen
}

/**
 * An error for certain, without a right to anything, and with its reason in the log of the server. Not in a later transaction of the connection, so the
 * text is none that the server reads when it plans the statement. Parameters: 1 transaction.
 */
const ABORT = `SELECT ('onlyonce: a call that was not awaited has not ended, so this transaction is aborted ' || clock_timestamp())::int
WHERE ${isInside('$1')}`
