import { LIMITS } from '../../core/limits.ts'
import type { RecordId } from '../../record/index.ts'
import type { DiscardedResult, DiscardRequest } from '../operations.ts'
import type { Connections } from './connections.ts'
import { inTurn } from './decisions.ts'
import { bind } from './flush.ts'
import type { Statements } from './statements.ts'

/** The last durable result of an operation, and the word of the operator that discards it. */
export async function discardResult(
  connections: Connections,
  statements: Statements,
  request: DiscardRequest,
): Promise<boolean> {
  const { id, seen, points, failure, discarded } = request
  const bound = bind(
    statements.discardResult,
    ...[id.account, id.operation, id.key, `${seen.fence}`, seen.attemptId, seen.state, `${seen.count}`],
    ...[`${points.count}`, points.last, points.progress.bytes, points.progress.sealedBy],
    ...[request.callKey, request.step, failure.code, failure.message, request.by, request.why],
    ...[discarded.bytes, discarded.sealedBy],
  )
  const { rows } = await inTurn(() => connections.runBounded(bound))
  return rows.at(-1)!.length === 1
}

export async function readDiscarded(
  connections: Connections,
  { lookDiscarded }: Statements,
  { account, operation, key }: RecordId,
): Promise<readonly DiscardedResult[]> {
  const { rows } = await connections.run(bind(lookDiscarded, account, operation, key, `${LIMITS.historyMax}`))
  const read = ([seq, callKey, hex, sealedBy]: (typeof rows)[0][0]) => ({
    seq: Number(seq),
    callKey: callKey!,
    bytes: Buffer.from(hex!, 'hex'),
    sealedBy: sealedBy ?? null,
  })
  return rows[0]!.map(read).reverse()
}
