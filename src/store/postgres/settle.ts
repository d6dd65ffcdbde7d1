import { randomUUID } from 'node:crypto'
import { OnlyonceError } from '../../core/errors.ts'
import { Deadline } from '../../core/retry.ts'
import { type Failure, mayHideEffects } from '../../record/index.ts'
import type { TransactionAttempt } from '../contract.ts'
import type { Connections } from './connections.ts'
import { bind } from './flush.ts'
import { readRecord } from './rows.ts'
import type { Statements } from './statements.ts'
import { retryableValues, supersedeValues } from './values.ts'

const COMMIT_LOST: Failure = {
  code: 'commit_lost',
  message: 'The answer to COMMIT was lost; the transaction was found to be rolled back.',
}

/**
 * Finds out what became of a COMMIT whose answer was lost. The row is the verdict, and one look is none: the
 * server may still be reading what we sent. So write first. The attempt that inserts the row decides, and an insert
 * waits for a transaction that is still open:
 *
 * - ours goes in: the attempt has not committed, and now never can, because its own insert must conflict;
 * - a row is there: the attempt id in it, or in its history, says whether it is the attempt's.
 *
 * Transaction ids are not asked: after a crash of the server an id may be used again, and the answer is then
 * that of another transaction.
 */
export async function settle(
  connections: Connections,
  statements: Statements,
  attempt: TransactionAttempt,
): Promise<'committed' | 'rolled_back'> {
  const deadline = new Deadline(connections.settings.settleMaxMs)
  const claimant = { ...attempt.claimant, attemptId: randomUUID() }
  const tombstone: TransactionAttempt = { ...attempt, claimant }
  let cause: unknown
  for (let tries = 0; ; tries += 1) {
    try {
      if (await writeRetryable(connections, statements, tombstone, COMMIT_LOST)) return 'rolled_back'
      const verdict = await readVerdict(connections, statements, attempt, claimant.attemptId)
      if (verdict !== null) return verdict
    } catch (error) {
      // An error that keeps us from asking leaves the question open: any other error would say that nothing happened.
      cause = error
    }
    if (!(await deadline.backOff(tries))) throw new OnlyonceError('outcome_unknown', { cause })
  }
}

/** Writes a retryable record where the attempt's own would stand. False when another row is there. */
export async function writeRetryable(
  connections: Connections,
  statements: Statements,
  given: TransactionAttempt,
  failure: Failure,
): Promise<boolean> {
  const kind = mayHideEffects(given.previous) ? 'handler_rerunnable' : given.claimant.kind
  const attempt = { ...given, claimant: { ...given.claimant, kind } }
  const write =
    attempt.previous === null
      ? bind(statements.insertRetryable, ...retryableValues(attempt, failure))
      : bind(statements.supersede, ...supersedeValues(attempt, { state: 'retryable', failure }))
  const { rows } = await connections.runBounded(write)
  return rows.at(-1)!.length > 0
}

async function readVerdict(
  connections: Connections,
  statements: Statements,
  { id, claimant, previous }: TransactionAttempt,
  tombstoneId: string,
): Promise<'committed' | 'rolled_back' | null> {
  const where = [id.account, id.operation, id.key] as const
  const { rows } = await connections.run(
    bind(statements.lookOne, ...where),
    bind(statements.lookAttempt, ...where, claimant.attemptId),
  )
  if (rows[1]!.length > 0) return 'committed'
  const row = rows[0]![0]
  if (row === undefined) return null
  const { record } = readRecord(row)
  if (record.attemptId === claimant.attemptId) return 'committed'
  // An earlier write of our own, whose answer was lost in turn.
  if (record.attemptId === tombstoneId) return 'rolled_back'
  // Still what the attempt set out from: the write lost a race that has left no trace. Write again.
  if (previous !== null && record.fence === previous.fence) return null
  return 'rolled_back'
}
