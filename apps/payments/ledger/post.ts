import type { Queryable } from 'onlyonce'
import { makeId } from '../ids.ts'
import type { Line } from './lines.ts'
import { INSERT_REVERSAL, INSERT_TRANSACTION } from './sql.ts'

/** Money that is only held is pending; what was moved is posted. */
export type LedgerState = 'pending' | 'posted'

/** What a transaction is, and what it is of: each of them is posted once. */
export interface Source {
  /** Such as `capture`, in small letters. */
  readonly kind: string
  /** The id of what it belongs to, such as `cap_…`. */
  readonly source: string
}

export interface Posting extends Source {
  readonly account: string
  readonly state: LedgerState
  readonly lines: readonly Line[]
  /** The transaction that this one takes back. */
  readonly reverses?: string
}

export interface Reversal extends Source {
  readonly account: string
  /** What is taken back. */
  readonly of: Source
  /** How much of it; all by default. */
  readonly amount?: number | bigint
}

/**
 * Writes one transaction, inside the caller's; one statement, which only inserts. The database refuses lines that do not come
 * to zero in each currency, and the same kind and source a second time (23505, `ledger_transactions_once`): that ends
 * the caller's transaction, as it should.
 *
 * @example
 * await post(tx, { account, kind: 'capture', source: capture.id, state: 'posted', lines: captureLines(capture) })
 */
export async function post(tx: Queryable, posting: Posting): Promise<{ readonly id: string }> {
  const { account, kind, source, state, lines, reverses } = posting
  const id = makeId('txn')
  await tx.query(INSERT_TRANSACTION, [
    account,
    id,
    kind,
    source,
    state,
    reverses ?? null,
    lines.map((line) => line.ledgerAccount),
    lines.map((line) => line.currency),
    lines.map((line) => exact(line.amount)),
  ])
  return { id }
}

/**
 * Writes the mirror of a transaction, all of it or a part. Whether the parts come to more than the whole is for the caller to
 * know, who holds the lock of what is taken back; verify() finds it.
 *
 * @example
 * await reverse(tx, { account, kind: 'release', source: capture.id, of: { kind: 'authorization', source: payment.id } })
 */
export async function reverse(tx: Queryable, reversal: Reversal): Promise<{ readonly id: string }> {
  const { account, kind, source, of, amount } = reversal
  const id = makeId('txn')
  const part = amount === undefined ? null : exact(amount)
  const { rows } = await tx.query(INSERT_REVERSAL, [account, id, kind, source, of.kind, of.source, part])
  if (rows.length === 0) {
    const what = `${of.kind} of ${of.source}`
    throw new Error(
      part === null
        ? `The ledger has no ${what} to reverse.`
        : `The ledger has no ${what} of which ${part} can be reversed.`,
    )
  }
  return { id }
}

/** A number that is not exact any more must not be written as if it were. */
function exact(amount: bigint | number): string {
  if (typeof amount !== 'bigint' && !Number.isSafeInteger(amount)) {
    throw new RangeError(`An amount of the ledger must be a safe integer or a bigint, not ${amount}.`)
  }
  return `${amount}`
}
