/** A payer who is to be forgotten: payments stay in the books, without who paid. */
import type { Queryable } from 'onlyonce'
import { LIMITS } from '../limits.ts'
import { FORGET_PAYER } from './sql-unsettled.ts'

export interface Forgotten {
  /** Payments that were changed. */
  readonly changed: number
  /** Where to go on; null where all payments of the account were looked at. */
  readonly after: string | null
}

/**
 * Takes a payer out of the payments of an account, with their metadata and that of their refunds; or puts a pseudonym in its place and
 * leaves those. A bounded number of payments are looked at. They are compared with new ones by their payer, so they are no longer in the way of any.
 *
 * @example
 * const { changed, after } = await forgetPayer(pool, account, { payer: 'alice', pseudonym: null, after: null })
 */
export async function forgetPayer(
  db: Queryable,
  account: string,
  { payer, pseudonym, after }: { payer: string; pseudonym: string | null; after: string | null },
): Promise<Forgotten> {
  const { payer_page_max, payer_pages_max } = LIMITS
  let last = after
  let changed = 0
  for (let page = 0; page < payer_pages_max; page += 1) {
    const { rows } = await db.query(FORGET_PAYER, [account, payer, pseudonym, last, payer_page_max])
    const found = (rows as { changed: number; read: number; last: string | null }[])[0]!
    changed += found.changed
    if (found.read < payer_page_max) return { changed, after: null }
    last = found.last
  }
  return { changed, after: last }
}
