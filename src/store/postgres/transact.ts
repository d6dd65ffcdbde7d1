import { createHash } from 'node:crypto'
import type { RecordId, Reply } from '../../record/index.ts'
import type { CrashPoint, TransactionAttempt, TransactionEnd } from '../contract.ts'
import type { Connections } from './connections.ts'
import { bind, flush } from './flush.ts'
import { readRecord } from './rows.ts'
import { BEGIN, type Statements, TRY_LOCK } from './statements.ts'
import { completedValues, supersedeValues } from './values.ts'
import { type Work, WorkTransaction } from './work-transaction.ts'

type ReplyTransaction = WorkTransaction<Reply>

/** One attempt: work, record and reply in one transaction and one commit. */
export function transact(
  connections: Connections,
  statements: Statements,
  attempt: TransactionAttempt,
  work: Work<Reply>,
  crashPoint: CrashPoint,
): Promise<TransactionEnd> {
  const script = {
    name: 'transaction',
    begin: bind(BEGIN[attempt.isolation ?? 'default']),
    timeMaxMs: attempt.timeMaxMs,
    strict: attempt.strictTx,
    ...(attempt.exclusive && {
      before: (transaction: ReplyTransaction) => lockFirst(transaction, statements, attempt),
    }),
    finish: (transaction: ReplyTransaction, reply: Reply) =>
      attempt.previous === null
        ? insert(transaction, statements, attempt, reply)
        : supersede(transaction, statements, attempt, reply),
  }
  return new WorkTransaction(connections, script, crashPoint).run(work)
}

/**
 * For `exclusive`: the lock first, then a look under it, because the owner before us may have committed
 * between our first look and our lock.
 */
async function lockFirst(
  { link, tx, connections }: ReplyTransaction,
  statements: Statements,
  { id, previous }: TransactionAttempt,
): Promise<TransactionEnd | null> {
  const client = await link.attachInTime()
  const bounds = [
    ...tx.takeUnsent(),
    bind(TRY_LOCK, lockOf(connections.settings.schema, id)),
    bind(statements.lookOne, id.account, id.operation, id.key),
  ]
  try {
    const { rows } = await flush(client, bounds, connections.named)
    tx.markOpened()
    if (rows.at(-2)![0]![0] !== 't') return { end: 'busy' }
    const row = rows.at(-1)![0]
    const fence = row === undefined ? 0 : readRecord(row).record.fence
    return fence === (previous?.fence ?? 0) ? null : { end: 'conflict' }
  } catch (error) {
    tx.failure = error
    throw error
  }
}

/** A new key: the finished record and COMMIT in one flush. A conflict makes the server skip the COMMIT. */
function insert(
  transaction: ReplyTransaction,
  statements: Statements,
  attempt: TransactionAttempt,
  reply: Reply,
): Promise<TransactionEnd> {
  const record = bind(statements.insertCompleted, ...completedValues(attempt, reply))
  return transaction.commit(reply, [...transaction.lastBounds(), record])
}

/**
 * A record is there already and may run again. An UPDATE that finds another fence fails silently, so COMMIT
 * has to wait until we have seen that it did not.
 */
async function supersede(
  transaction: ReplyTransaction,
  statements: Statements,
  attempt: TransactionAttempt,
  reply: Reply,
): Promise<TransactionEnd> {
  const values = supersedeValues(attempt, { state: 'completed', reply })
  const refusal = await transaction.ask(bind(statements.supersede, ...values), (rows) =>
    rows === 0 ? { end: 'conflict' } : null,
  )
  return refusal ?? (await transaction.commit(reply, []))
}

function lockOf(schema: string, id: RecordId): string {
  const parts = [schema, id.account, id.operation, id.key].join('\0')
  return createHash('sha256').update(parts).digest().readBigInt64BE(0).toString()
}
