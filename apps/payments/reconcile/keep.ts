import { createHash } from 'node:crypto'
import type { Queryable } from 'onlyonce'
import { makeId } from '../ids.ts'
import { type Comparison, type Difference, differencesOf } from './compare.ts'
import { countsOf } from './render.ts'
import { INSERT_DIFFERENCES, INSERT_RUN } from './sql.ts'

/** Differences in one statement. */
const KEEP_BATCH_MAX = 500

export interface Run {
  /** Of the processor and mode, such as `stripe:live`. */
  readonly books: string
  readonly from: Date
  readonly to: Date
  readonly comparison: Comparison
  /** When both books were read. Default: now. */
  readonly readAt?: Date
  /** Accounts of ours, among those that the processor names: it may be told any name by others who have its key. */
  readonly accounts?: ReadonlySet<string>
}

export interface Kept {
  readonly id: string
  /** What was never told before. Emit an event for each of them in the same transaction: so each is told once. */
  readonly fresh: readonly { readonly account: string; readonly difference: Difference }[]
}

/**
 * Writes down what a run has found, and says what of it is new.
 *
 * @example
 * const { fresh } = await keepRun(tx, { books: 'stripe:live', from, to, comparison })
 * for (const { account, difference } of fresh) await emit(tx, account, difference)
 */
export async function keepRun(tx: Queryable, run: Run): Promise<Kept> {
  const { books, from, to, comparison, readAt = null, accounts = new Set() } = run
  const id = makeId('rec')
  const {
    matched,
    missing_here: missingHere,
    missing_there: missingThere,
    amount_mismatch: amountMismatch,
    aged_unknown: agedUnknown,
  } = countsOf(comparison)
  const counts = [matched, missingHere, missingThere, amountMismatch, agedUnknown]
  await tx.query(INSERT_RUN, [
    books,
    id,
    from.toISOString(),
    to.toISOString(),
    ...counts,
    readAt?.toISOString(),
  ])
  const found = differencesOf(comparison).map((difference) => ({
    account: accountOf(difference, accounts) ?? books,
    fingerprint: fingerprintOf(difference),
    difference,
  }))
  // Everybody in the same order, over all batches: two runs at once wait for each other, and do not deadlock.
  const ordered = found.toSorted((a, b) => (a.fingerprint < b.fingerprint ? -1 : 1))
  const told = new Set<string>()
  for (let i = 0; i < ordered.length; i += KEEP_BATCH_MAX) {
    const batch = ordered.slice(i, i + KEEP_BATCH_MAX)
    const { rows } = await tx.query(INSERT_DIFFERENCES, [
      id,
      batch.map(({ account }) => account),
      batch.map(({ fingerprint }) => fingerprint),
      batch.map(({ difference }) => difference.difference),
      batch.map(({ difference }) => (difference.ours ?? difference.theirs)!.kind),
      batch.map(({ difference }) => jsonOf(difference.ours)),
      batch.map(({ difference }) => jsonOf(difference.theirs)),
    ])
    for (const { account, fingerprint } of rows) told.add(`${account} ${fingerprint}`)
  }
  const fresh = found.filter(({ account, fingerprint }) => told.has(`${account} ${fingerprint}`))
  return { id, fresh: fresh.map(({ account, difference }) => ({ account, difference })) }
}

/** Whose it is: as we know it, or as the processor was told. Null: nobody's. */
function accountOf({ ours, theirs }: Difference, accounts: ReadonlySet<string>): string | null {
  if (ours !== null) return ours.account
  return theirs.account !== null && accounts.has(theirs.account) ? theirs.account : null
}

/** What differs, and how. Not when: the same thing found a day later is the same. */
function fingerprintOf({ difference, ours, theirs }: Difference): string {
  const parts = [
    difference,
    (ours ?? theirs)!.kind,
    ours?.id,
    theirs?.gateway_id ?? ours?.gateway_id,
    ours?.moved,
    ours?.currency,
    theirs?.moved,
    theirs?.currency,
  ]
  return createHash('sha256')
    .update(JSON.stringify(parts.map((part) => part ?? null)))
    .digest('hex')
}

function jsonOf(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value)
}
