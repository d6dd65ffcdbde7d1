/** A payer who is to be forgotten: payments stay in the books, without who paid. */
import type { Queryable } from 'onlyonce'
import type { Worker } from 'onlyonce/workers'
import type pg from 'pg'
import { LIMITS } from '../limits.ts'
import { FORGET_INTENT_PAYERS, FORGET_PAYER } from './sql-unsettled.ts'

export interface ForgetPayer {
  readonly payer: string
  readonly pseudonym: string | null
  /** Where the page before ended; null from the start. */
  readonly after: string | null
  /** How long a payment that has succeeded is in the way of another one of the same order. */
  readonly comparedMs: number
}

export interface Forgotten {
  /** Payments that were changed. */
  readonly changed: number
  /** Where to go on; null where all payments of the account were looked at. */
  readonly after: string | null
}

/**
 * Takes a payer out of the payments of an account, with their metadata and that of their refunds; or puts a pseudonym in its place and
 * leaves those. A bounded number of payments are looked at. For `comparedMs` they are still compared with new ones by the payer that they had:
 * otherwise an order that was paid could be charged once more. Then the `forgetter` takes that copy, too.
 *
 * @example
 * const { changed, after } = await forgetPayer(pool, account, { payer: 'alice', pseudonym: null, after: null, comparedMs })
 */
export async function forgetPayer(
  db: Queryable,
  account: string,
  { payer, pseudonym, after, comparedMs }: ForgetPayer,
): Promise<Forgotten> {
  const { payerPageMax, payerPagesMax } = LIMITS
  let last = after
  let changed = 0
  for (let page = 0; page < payerPagesMax; page += 1) {
    const { rows } = await db.query(FORGET_PAYER, [
      account,
      payer,
      pseudonym,
      last,
      payerPageMax,
      Math.ceil(comparedMs / 60_000),
    ])
    const found = (rows as { changed: number; read: number; last: string | null }[])[0]!
    changed += found.changed
    if (found.read < payerPageMax) return { changed, after: null }
    last = found.last
  }
  return { changed, after: last }
}

/** Takes the copies of forgotten payers by which payments were compared, when their time is over. */
export function forgetter({ pool }: { readonly pool: pg.Pool }): Worker {
  const { workerBatchMax } = LIMITS
  return {
    name: 'payments.forgetter',
    everyMs: LIMITS.forgottenLookEveryMs,
    async runOnce() {
      const { rowCount } = await pool.query(FORGET_INTENT_PAYERS, [workerBatchMax])
      const done = rowCount ?? 0
      return { done, more: done === workerBatchMax }
    },
  }
}
