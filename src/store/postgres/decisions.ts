import { LIMITS } from '../../core/limits.ts'
import type { RecordId } from '../../record/index.ts'
import { failureOfReply } from '../../record/value.ts'
import type { Queryable } from '../contract.ts'
import type {
  AuditAction,
  AuditEntry,
  DecideRequest,
  DecisionStore,
  Listed,
  ListRequest,
  RecordSummary,
  SeenWithin,
} from '../decisions.ts'
import { alone } from './busy.ts'
import { classify } from './classify.ts'
import type { Connections } from './connections.ts'
import { bind, type Row, type Statement } from './flush.ts'
import type { Value } from './messages.ts'
import { arrayLiteral, kindOf, readList, readSeen, replyValues } from './rows.ts'
import { behindSavepoint } from './savepoint.ts'
import { STILL_INSIDE } from './sql/session.ts'
import type { Statements } from './statements.ts'

const NO_REPLY = [null, null, null, null, null] as const

/** What operators see and decide. */
export class PostgresDecisions implements DecisionStore {
  readonly #connections: Connections
  readonly #statements: Statements

  constructor(connections: Connections, statements: Statements) {
    this.#connections = connections
    this.#statements = statements
  }

  async list(request: ListRequest): Promise<readonly Listed[]> {
    const { states, account, key, operation, olderThanMs, limit, after } = request
    const { rows } = await this.#connections.run(
      bind(
        this.#listing(request),
        arrayLiteral(states),
        account,
        operation,
        `${olderThanMs}`,
        after?.attemptedAtUs ?? null,
        after?.account ?? null,
        after?.operation ?? null,
        after?.key ?? null,
        `${limit}`,
        ...(key === null ? [] : [key, `${LIMITS.keyOperationsMax}`]),
      ),
    )
    return rows[0]!.map((row) => {
      const record = readSummary(row)
      const { account, operation, key } = record
      return { record, position: { account, operation, key, attemptedAtUs: row.at(-1)! } }
    })
  }

  #listing({ states, key, failed }: ListRequest): Statement {
    const { listUnfinished, listOfAccount, listFailed, listOfKey } = this.#statements
    if (key !== null) return listOfKey
    if (failed) return listFailed
    return states.every((state) => UNFINISHED.includes(state)) ? listUnfinished : listOfAccount
  }

  async summary({ account, operation, key }: RecordId): Promise<RecordSummary | null> {
    const { rows } = await this.#connections.run(bind(this.#statements.lookSummary, account, operation, key))
    const row = rows[0]![0]
    return row === undefined ? null : readSummary(row)
  }

  async audit({ account, operation, key }: RecordId): Promise<readonly AuditEntry[]> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.lookAudit, account, operation, key, `${LIMITS.historyMax}`),
    )
    return rows[0]!.map(readAudit).reverse()
  }

  async lookWithin(tx: Queryable, { account, operation, key }: RecordId): Promise<SeenWithin | null> {
    const { lookOneAsText, lookForDecision } = this.#statements
    const seen = readSeen((await tx.query(lookOneAsText.text, [account, operation, key])).rows[0])
    if (seen === null) return null
    const kept = (await tx.query(lookForDecision.text, [account, operation, key])).rows[0]
    return {
      ...seen,
      retentionMs: numberOrNull(kept?.retention_ms),
      waitsFor: kept?.waits_for ?? null,
      voidCalls: readList(kept?.void_calls),
    }
  }

  async decide(request: DecideRequest, tx?: Queryable): Promise<boolean> {
    const { decide } = this.#statements
    if (tx !== undefined) return await inTurn(() => decideWithin(tx, decide.text, request))
    const values = decisionValues(request, null)
    const { rows } = await inTurn(() => this.#connections.runBounded(bind(decide, ...values)))
    return rows.at(-1)!.length === 1
  }
}

/** Evidence is noted without a lock of the record: of two entries of the same moment one has to be numbered again. */
export async function inTurn<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await write()
    } catch (error) {
      if (classify(error) !== 'unique' || tries >= LIMITS.claimLooksMax) throw error
    }
  }
}

/** Behind a savepoint: where anything goes wrong here, the caller's transaction is as it was before. */
async function decideWithin(tx: Queryable, text: string, request: DecideRequest): Promise<boolean> {
  const options = { shares: true, unawaitedMaxMs: LIMITS.transactionMaxMs }
  return await alone(tx, options, (transaction) =>
    behindSavepoint(tx, transaction, async (leave) => {
      const { xid } = transaction
      const { rows } = await tx.query(text, decisionValues(request, xid))
      if (rows.length === 1) return true
      // The record has changed, or the transaction is over.
      if ((await tx.query(STILL_INSIDE, [xid])).rows.length === 0) leave()
      return false
    }),
  )
}

function decisionValues(
  { id, from, to, retentionMs, action, by, why, voidCall }: DecideRequest,
  xid: string | null,
): Value[] {
  return [
    id.account,
    id.operation,
    id.key,
    `${from.fence}`,
    from.attemptId,
    from.state,
    to.state,
    retentionMs === null ? null : `${retentionMs}`,
    ...(to.state === 'completed' ? replyValues(to.reply) : NO_REPLY),
    by,
    why,
    action,
    ...('failure' in to ? [to.failure.code, to.failure.message] : [null, null]),
    voidCall,
    xid,
  ]
}

const UNFINISHED: readonly string[] = ['in_progress', 'unknown', 'parked']

/** Turns the columns of SUMMARY_COLUMNS into what an operator sees. */
function readSummary(row: Row): RecordSummary {
  const [account, operation, key, state, fence, owner, created, attempted, changed, lease, expires] = row
  const [code, message, version, recoveryPoint, deadline, lookAt, looks, waitsFor, retention, voidCalls] =
    row.slice(11)
  const [status, schema, kind, waitsStep, waitsSince, sentUntil] = row.slice(21)
  const failed =
    status == null ? null : failureOfReply({ status: Number(status), schema: Number(schema) }, kindOf(kind!))
  return {
    account: account!,
    operation: operation!,
    key: key!,
    state: state as RecordSummary['state'],
    fence: Number(fence),
    owner: owner!,
    createdAt: Number(created),
    attemptedAt: Number(attempted),
    changedAt: Number(changed),
    leaseUntil: numberOrNull(lease),
    expiresAt: numberOrNull(expires),
    failure: code === null ? failed : { code: code!, message: message ?? '' },
    replyStatus: numberOrNull(status),
    version: version ?? null,
    recoveryPoint: recoveryPoint ?? null,
    deadlineAt: numberOrNull(deadline),
    lookAt: numberOrNull(lookAt),
    looks: Number(looks ?? 0),
    waitsFor: waitsFor ?? null,
    waitsStep: waitsStep ?? null,
    waitsSince: numberOrNull(waitsSince),
    sentUntil: numberOrNull(sentUntil),
    retentionMs: numberOrNull(retention),
    voidCalls: readList(voidCalls),
  }
}

/** Turns the columns of AUDIT_COLUMNS into an entry. */
function readAudit(row: Row): AuditEntry {
  const [seq, at, by, why, action, from, to, fence, callKey] = row
  return {
    seq: Number(seq),
    at: Number(at),
    by: by!,
    why: why!,
    // A version before `give_up` wrote it as `resolve`, which is never made of what is retryable.
    action: from === 'retryable' && to === 'completed' ? 'give_up' : (action as AuditAction),
    from: from as AuditEntry['from'],
    to: to as AuditEntry['to'],
    fence: Number(fence),
    callKey: callKey ?? null,
  }
}

function numberOrNull(text: string | null | undefined): number | null {
  return text === null || text === undefined ? null : Number(text)
}
