import { OnlyonceError } from '../../errors.ts'
import { LIMITS } from '../../limits.ts'
import { decide, type Reply, type Run, reserve } from '../../record/index.ts'
import { isOfClass } from '../../thrown.ts'
import type { ClaimRequest, Queryable, Store, WithinEnd } from '../contract.ts'
import { alone } from './busy.ts'
import { cannotNow, classify, sqlState } from './classify.ts'
import { idleAmong } from './ends.ts'
import { carryFences } from './fences.ts'
import { NO_TRANSACTION } from './open-transaction.ts'
import type { PostgresSettings } from './options.ts'
import { readSeen, replyValues } from './rows.ts'
import type { Statements } from './statements.ts'
import { plainText } from './type-parsers.ts'
import { claimValues, supersedeValues } from './values.ts'

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
  retention_ms: number,
  work: WithinWork,
): Promise<WithinEnd> {
  const inner: Queryable = { query: (text, values) => tx.query(text, values) }
  return await alone(tx, { shares: false }, (enter) =>
    carryFences(tx, inner, async () => {
      await setSavepoint(tx)
      const entered = (claimed: Run) => enter(() => work(inner, claimed))
      return await behindSavepoint(tx, statements, settings, request, retention_ms, entered)
    }),
  )
}

/** Throws where there is no transaction to join. */
export async function setSavepoint(tx: Queryable): Promise<void> {
  try {
    await tx.query('SAVEPOINT onlyonce')
  } catch (error) {
    if (sqlState(error) === NO_TRANSACTION) throw new OnlyonceError('transaction_required', { cause: error })
    throw idleAmong(error) ?? error
  }
}

async function behindSavepoint(
  tx: Queryable,
  statements: Statements,
  settings: PostgresSettings,
  request: ClaimRequest,
  retention_ms: number,
  work: (claimed: Run) => Promise<Reply>,
): Promise<WithinEnd> {
  try {
    const claim = await claimBounded(tx, statements, settings, request)
    if (!('claimed' in claim)) {
      await tx.query('RELEASE SAVEPOINT onlyonce')
      return claim
    }
    const reply = await work(claim.claimed)
    const { account, operation, key } = request.id
    const { fence, attempt_id } = claim.claimed.record
    const owned = [account, operation, key, `${fence}`, attempt_id]
    const done = await tx.query(statements.complete.text, [
      ...owned,
      `${retention_ms}`,
      ...replyValues(reply),
    ])
    if (done.rows.length !== 1) throw new Error('the record that this transaction holds is gone')
    await tx.query('RELEASE SAVEPOINT onlyonce')
    return { end: 'completed', reply }
  } catch (error) {
    await undo(tx)
    if (isOfClass(error, LockWait)) return { end: 'busy' }
    throw error
  }
}

async function claimBounded(
  tx: Queryable,
  statements: Statements,
  settings: PostgresSettings,
  request: ClaimRequest,
): Promise<Claimed> {
  // The caller's own bound on lock waits comes back afterwards; a rollback to the savepoint restores it too.
  const before = await tx.query(
    `SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', $1, true) AS set`,
    [`${settings.lock_wait_max_ms}`],
  )
  const lock_timeout = plainText(before.rows[0].before)
  let claim: Claimed
  try {
    claim = await insertOrDecide(tx, statements, request)
  } catch (error) {
    // What the claim itself refuses, such as a secret that is missing here, is no error of the database.
    if (error instanceof OnlyonceError) throw error
    const idle = idleAmong(error)
    if (idle !== null) throw idle
    if (cannotNow(error)) throw new OnlyonceError('store_unavailable', { cause: error })
    throw classify(error) === 'lock_wait' ? new LockWait(error) : error
  }
  await tx.query(`SELECT set_config('lock_timeout', $1, true)`, [lock_timeout])
  return claim
}

async function insertOrDecide(
  tx: Queryable,
  statements: Statements,
  request: ClaimRequest,
): Promise<Claimed> {
  const { id, claimant, lease_ms, takeover } = request
  const where = [id.account, id.operation, id.key]
  for (let look = 0; look < LIMITS.claim_looks_max; look += 1) {
    const inserted = await tx.query(statements.insertInProgress.text, claimValues(request))
    if (inserted.rows.length === 1) {
      const [created_at] = Object.values(inserted.rows[0])
      const record = reserve(null, claimant, lease_ms, Number(created_at))
      return { claimed: { kind: 'run', record, from: 'none', effects_possible: false } }
    }
    const seen = readSeen((await tx.query(statements.lookOneAsText.text, where)).rows[0])
    if (seen === null) continue
    const { record, now } = seen
    const same_request = record.state === 'expired' || request.matches(record.fingerprint)
    const decision = decide(record, { claimant, same_request, lease_ms, takeover }, now)
    if (decision.kind !== 'run') return { end: 'decided', decision }
    const attempt = { id, claimant, previous: record, retention_ms: 0 }
    const taken = await tx.query(
      statements.supersede.text,
      supersedeValues(attempt, { state: 'in_progress', lease_ms }),
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

/** On a connection that is gone there is nothing to undo; the error that brought us here says more. */
export async function undo(tx: Queryable): Promise<void> {
  try {
    await tx.query('ROLLBACK TO SAVEPOINT onlyonce')
    await tx.query('RELEASE SAVEPOINT onlyonce')
  } catch {}
}
