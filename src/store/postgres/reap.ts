import { LIMITS } from '../../core/limits.ts'
import { Deadline } from '../../core/retry.ts'
import type { Reaped, ReapRequest } from '../contract.ts'
import { classify } from './classify.ts'
import type { Connections } from './connections.ts'
import { type Bound, bind, type FlushResult, flush, type Row, statement } from './flush.ts'
import { arrayLiteral } from './rows.ts'
import { setGroupBounds } from './sql/group.ts'
import { setStatementMaxAlone } from './sql/session.ts'
import type { Statements } from './statements.ts'

/**
 * Rows are found by an index, also by a plan that was made while the table was small; and a row that a transaction holds is
 * waited for but a moment.
 */
const SET_BOUNDS = bind(statement(setGroupBounds(LIMITS.lockWaitGroupMs)))

/**
 * Finds finished records past their retention, and takes them by what was seen of them. Two statements, so that it works
 * over all accounts of a cluster: no row is locked by the first, and the second names the account of each.
 */
export async function reap(
  connections: Connections,
  statements: Statements,
  { mode, batchMax, keptMinMs }: ReapRequest,
): Promise<Reaped> {
  const find = bind(statements.findReapable, `${keptMinMs}`, `${batchMax}`)
  const found = (await runBounded(connections, find)).rows.at(-1)!
  const take = mode === 'delete' ? statements.deleteReapable : statements.expireReapable
  const taking = (rows: readonly Row[]) => bind(take, `${keptMinMs}`, ...columns(rows))
  const deadline = new Deadline(connections.settings.statementMaxMs)
  const count = await takeAll(connections, found, taking, deadline)
  await reapEvidence(connections, statements, batchMax)
  // Where all of them are held by others, asking again at once would find the same.
  return { count, more: found.length === batchMax && count > 0 }
}

/** What was told about calls is kept far longer than any of them can be in doubt. */
async function reapEvidence(
  connections: Connections,
  statements: Statements,
  batchMax: number,
): Promise<void> {
  const find = bind(statements.findOldEvidence, `${LIMITS.evidenceKeptMs}`, `${batchMax}`)
  const found = (await runBounded(connections, find)).rows.at(-1)!
  if (found.length === 0) return
  const values = [0, 1].map((column) => arrayLiteral(found.map((row) => row[column]!)))
  await runBounded(connections, bind(statements.deleteEvidence, ...values))
}

/**
 * One row that a transaction holds must not keep the others: then each half is taken by itself, until the row is alone. It is
 * left for another time, as is all that the deadline cuts off.
 */
async function takeAll(
  connections: Connections,
  rows: readonly Row[],
  taking: (rows: readonly Row[]) => Bound,
  deadline: Deadline,
): Promise<number> {
  if (rows.length === 0 || deadline.passed) return 0
  try {
    return (await runBounded(connections, taking(rows))).rows.at(-1)!.length
  } catch (error) {
    if (classify(error) !== 'lock_wait') throw error
    if (rows.length === 1) return 0
    const middle = Math.ceil(rows.length / 2)
    const first = await takeAll(connections, rows.slice(0, middle), taking, deadline)
    return first + (await takeAll(connections, rows.slice(middle), taking, deadline))
  }
}

/** The bound is kept by the server: it would go on with no caller left. */
function runBounded(connections: Connections, wanted: Bound): Promise<FlushResult> {
  const { named, settings } = connections
  const maxMs = Math.min(LIMITS.reapStatementMaxMs, settings.statementMaxMs)
  const bound = bind(statement(setStatementMaxAlone(maxMs)))
  return connections.repeat(() =>
    connections.use(
      (client) => flush(client, [bound, SET_BOUNDS, wanted], named),
      maxMs + settings.statementMaxMs,
    ),
  )
}

function columns(rows: readonly Row[]): string[] {
  return [0, 1, 2, 3, 4].map((column) => arrayLiteral(rows.map((row) => row[column]!)))
}
