import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { isOfClass } from '../../core/thrown.ts'
import { decide, type Reply, type Run, reserve } from '../../record/index.ts'
import type { ClaimRequest, Queryable, Store, WithinEnd } from '../contract.ts'
import { alone } from './busy.ts'
import { cannotNow, classify } from './classify.ts'
import { carryFences } from './fences.ts'
import { ended, type Transaction } from './open-transaction.ts'
import type { PostgresSettings } from './options.ts'
import { readSeen, replyValues } from './rows.ts'
import { behindSavepoint } from './savepoint.ts'
import { ServerEnd } from './server-end.ts'
import type { Statements } from './statements.ts'
import { refuse } from './tx.ts'
import { plainText } from './type-parsers.ts'
import { claimValues, supersedeValues } from './values.ts'
import { statusNow } from './wire.ts'

type Claimed = { readonly claimed: Run } | Exclude<WithinEnd, { end: 'completed' }>
type WithinWork = Parameters<Store<unknown>['within']>[3]

/**
 * Claims, works and completes inside a transaction of the caller's. Everything happens behind a savepoint:
 * where anything goes wrong here, the caller's transaction is as it was before, and goes on. Only a fence of a lock that proves
 * stale aborts it.
 */
export async function within(
  tx: Queryable,
  statements: Statements,
  settings: PostgresSettings,
  request: ClaimRequest,
  retentionMs: number,
  work: WithinWork,
): Promise<WithinEnd> {
  const server = new ServerEnd(tx)
  const inner = new WithinTx(tx, server)
  let thrown: unknown = NOTHING
  const noted = (claimed: Run) =>
    work(inner, claimed).catch((error) => {
      thrown = error
      throw error
    })
  try {
    const options = { shares: false, inner, unawaitedMaxMs: settings.transactionMaxMs }
    return await alone(tx, options, (transaction, enter) => {
      inner.begin(transaction)
      return carryFences(tx, transaction, () =>
        claimAndWork({ tx, transaction, statements, settings }, request, retentionMs, (claimed) =>
          enter(() => noted(claimed)).finally(() => inner.end()),
        ),
      )
    })
  } catch (error) {
    if (isOfClass(error, LockWait)) return { end: 'busy' }
    // What the function throws is its own.
    if (error === thrown) throw error
    // A standby gives no transaction an id, so it refuses before the claim is sent.
    if (classify(error) === 'not_primary') throw new OnlyonceError('store_unavailable', { cause: error })
    throw server.behind(error)
  } finally {
    server.forget()
  }
}

/** No value that code throws. */
const NOTHING = Symbol('nothing')

/**
 * What the function is given. It ends with the function and the calls that the function has made: a statement that a branch of its code sends later, as after a
 * Promise.all in which another branch has thrown, would be committed without the record that is undone.
 */
class WithinTx implements Queryable {
  #joined: Transaction | null = null
  #over = false
  /** An own member, so that it may be taken off the object as it may be of any other tx. */
  readonly query: Queryable['query']

  constructor(tx: Queryable, server: ServerEnd) {
    this.query = (text, values) => {
      const refusal = this.#joined?.leftOpen ?? (this.#over ? new OnlyonceError('transaction_over') : null)
      return refusal === null ? server.watch(queryInside(tx, text, values)) : refuse(refusal)
    }
  }

  begin(joined: Transaction): void {
    this.#joined = joined
  }

  end(): void {
    this.#over = true
  }
}

/** What the function sends behind the end of its transaction would stand by itself. A client of pg that waits for no answer knows that. */
function queryInside(tx: Queryable, text: string, values?: unknown[]): ReturnType<Queryable['query']> {
  return statusNow(tx) === 'I' ? Promise.reject(ended()) : tx.query(text, values)
}

/** The transaction of the caller's that a call has joined. */
interface Joined {
  readonly tx: Queryable
  readonly transaction: Transaction
  readonly statements: Statements
  readonly settings: PostgresSettings
}

function claimAndWork(
  joined: Joined,
  request: ClaimRequest,
  retentionMs: number,
  work: (claimed: Run) => Promise<Reply>,
): Promise<WithinEnd> {
  const { tx, transaction, statements } = joined
  return behindSavepoint(tx, transaction, async (leave) => {
    const claim = await claimBounded(joined, request, leave)
    if (!('claimed' in claim)) return claim
    const reply = await work(claim.claimed)
    const { account, operation, key } = request.id
    const { fence, attemptId } = claim.claimed.record
    const owned = [account, operation, key, `${fence}`, attemptId]
    const values = [...owned, `${retentionMs}`, ...replyValues(reply), transaction.xid]
    const { rows } = await tx.query(statements.completeWithin.text, values)
    if (rows[0]?.fence === null) leave()
    if (rows.length !== 1) throw new Error('the record that this transaction holds is gone')
    return { end: 'completed', reply }
  })
}

async function claimBounded(joined: Joined, request: ClaimRequest, leave: () => never): Promise<Claimed> {
  try {
    return (
      (await insert(joined, request, leave)) ?? (await bounded(joined, () => decided(joined, request, leave)))
    )
  } catch (error) {
    // What the claim itself refuses, such as a secret that is missing here, is no error of the database.
    if (error instanceof OnlyonceError) throw error
    if (cannotNow(error)) throw new OnlyonceError('store_unavailable', { cause: error })
    throw classify(error) === 'lock_wait' ? new LockWait(error) : error
  }
}

/** Null where a row is there. Its wait for a lock has a bound of its own. */
async function insert(
  { tx, transaction: { xid }, statements, settings }: Joined,
  request: ClaimRequest,
  leave: () => never,
): Promise<Claimed | null> {
  const values = [...claimValues(request), xid, `${settings.lockWaitMaxMs}`]
  const { rows } = await tx.query(statements.insertInProgressWithin.text, values)
  const said = plainText(rows[0].said)
  if (said === 'ended') leave()
  if (said === 'seen') return null
  const record = reserve(null, request.claimant, request.leaseMs, Number(said))
  return { claimed: { kind: 'run', record, from: 'none', effectsPossible: false } }
}

/** The caller's own bound on lock waits comes back afterwards; a rollback to the savepoint restores it too. */
async function bounded<T>({ tx, settings }: Joined, run: () => Promise<T>): Promise<T> {
  const before = await tx.query(
    `SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', $1, true) AS set`,
    [`${settings.lockWaitMaxMs}`],
  )
  const value = await run()
  await tx.query(`SELECT set_config('lock_timeout', $1, true)`, [plainText(before.rows[0].before)])
  return value
}

/** A row was there a moment ago. */
async function decided(joined: Joined, request: ClaimRequest, leave: () => never): Promise<Claimed> {
  const { tx, transaction, statements } = joined
  const { id, claimant, leaseMs, takeover } = request
  const where = [id.account, id.operation, id.key]
  for (let look = 0; look < LIMITS.claimLooksMax; look += 1) {
    const claimed = look === 0 ? null : await insert(joined, request, leave)
    if (claimed !== null) return claimed
    const seen = readSeen((await tx.query(statements.lookOneAsText.text, where)).rows[0])
    if (seen === null) continue
    const { record, now } = seen
    const sameRequest = record.state === 'expired' || request.matches(record.fingerprint)
    const decision = decide(record, { claimant, sameRequest, leaseMs, takeover }, now)
    if (decision.kind !== 'run') return { end: 'decided', decision }
    const attempt = { id, claimant, previous: record, retentionMs: 0 }
    const taken = await tx.query(
      statements.supersede.text,
      supersedeValues(attempt, { state: 'in_progress', leaseMs }, transaction.xid),
    )
    if (taken.rows.length === 1) return { claimed: decision }
  }
  return { end: 'busy' }
}

/** A wait for a lock that was ours, not one that the caller's work ran into. */
class LockWait extends Error {
  constructor(cause: unknown) {
    super('waited too long for another transaction with this key', { cause })
  }
}
