import type { Queryable } from '../contract.ts'
import { endByServer } from './ends.ts'
import { ended, orEnded, type Transaction } from './open-transaction.ts'

/**
 * Runs something behind a savepoint, in a transaction of the caller's. Throws where there is no transaction to join. Where anything goes wrong, the
 * transaction is as it was before, and goes on. `leave` ends it where a statement has found that the transaction is over. The savepoint is gone
 * then, and a ROLLBACK TO it would abort a later transaction on the connection.
 */
export async function behindSavepoint<T>(
  tx: Queryable,
  transaction: Transaction,
  run: (leave: () => never) => Promise<T>,
): Promise<T> {
  await send(tx, 'SAVEPOINT onlyonce')
  let over = false
  const leave = (): never => {
    over = true
    throw ended()
  }
  try {
    const value = await run(leave)
    if (transaction.leftOpen !== null) throw transaction.leftOpen
    await send(tx, 'RELEASE SAVEPOINT onlyonce')
    return value
  } catch (error) {
    if (!over && transaction.leftOpen === null) await undo(tx)
    throw error
  }
}

async function send(tx: Queryable, text: string): Promise<void> {
  try {
    await tx.query(text)
  } catch (error) {
    throw endByServer(error) ?? orEnded(error)
  }
}

/** On a connection that is gone there is nothing to undo; the error that brought us here says more. */
async function undo(tx: Queryable): Promise<void> {
  try {
    await tx.query('ROLLBACK TO SAVEPOINT onlyonce')
    await tx.query('RELEASE SAVEPOINT onlyonce')
  } catch {}
}
