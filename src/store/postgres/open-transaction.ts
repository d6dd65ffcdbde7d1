import { OnlyonceError } from '../../errors.ts'
import type { Queryable } from '../contract.ts'
import { sqlState } from './classify.ts'
import type { Statement } from './flush.ts'
import { Tx } from './tx.ts'
import { statusNow } from './wire.ts'

/**
 * Refuses what has no open transaction: a pool, or a client before BEGIN. What is written there stands also where the caller's work is rolled back. A
 * client of pg that waits for no answer knows its status. Everything else is asked with LOCK TABLE, which the server refuses outside of a
 * transaction. The mode conflicts with nothing that the insert behind it does not wait for too, and unlike a savepoint it leaves nothing to release.
 */
export async function requireOpen(tx: Queryable, lock: Statement): Promise<void> {
  if (tx instanceof Tx) return
  const status = statusNow(tx)
  if (status === 'I') throw new OnlyonceError('transaction_required')
  if (status !== null) return
  try {
    await tx.query(lock.text)
  } catch (error) {
    throw sqlState(error) === NO_TRANSACTION
      ? new OnlyonceError('transaction_required', { cause: error })
      : error
  }
}

export const NO_TRANSACTION = '25P01'
