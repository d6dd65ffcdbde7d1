import { acrossCopies } from '../../core/copies.ts'
import { OnlyonceError } from '../../core/errors.ts'
import type { Queryable } from '../contract.ts'
import { sqlState } from './classify.ts'
import { WHICH_TRANSACTION } from './sql/session.ts'
import { Tx } from './tx.ts'
import { plainText } from './type-parsers.ts'
import { type Asked, asking } from './whose.ts'
import { statusNow } from './wire.ts'

/** The transaction that an object of the caller's works in. */
export interface Transaction {
  /** The same for all objects over one connection. */
  readonly key: object | string
  /** By which the server knows it; null where it is the library's own, which sends nothing behind its end. */
  readonly xid: string | null
  /** Set when the transaction was aborted, because a call in it was left open: see `leaveOpen`. All calls on the transaction share this object. */
  leftOpen: OnlyonceError | null
}

/** By object, while a call behind a savepoint works on it: what is asked inside need not be asked again. */
const known = acrossCopies('known_transactions', () => new WeakMap<Queryable, Transaction>())

/**
 * Which transaction this is. Whether it is still open when a statement comes to the server cannot be known here: another function of the caller's may
 * end it meanwhile, and the statement would stand by itself. So every statement that writes is given the id, and refuses by itself: see `isInside`.
 * That also refuses a pool, which gives each statement another transaction.
 */
export function transactionOf(tx: Queryable): Transaction | Promise<Transaction> {
  if (tx instanceof Tx) return { key: tx, xid: null, leftOpen: null }
  return known.get(tx) ?? ask(tx)
}

/** Remembers it for as long as a call works there. Gives what forgets it. */
export function remember(tx: Queryable, transaction: Transaction): () => void {
  if (known.has(tx)) return () => {}
  known.set(tx, transaction)
  return () => void known.delete(tx)
}

async function ask(tx: Queryable): Promise<Transaction> {
  // A client of pg that waits for no answer knows that no transaction is open.
  if (statusNow(tx) === 'I') throw new OnlyonceError('transaction_required')
  const asked: Asked = { own: null }
  const { rows } = await asking.run(asked, () => tx.query(WHICH_TRANSACTION))
  if (asked.own !== null) return { key: asked.own, xid: null, leftOpen: null }
  return { key: plainText(rows[0].key), xid: plainText(rows[0].xid), leftOpen: null }
}

/** Told of a statement that has refused because its transaction is over. */
export function ended(cause?: unknown): OnlyonceError {
  return new OnlyonceError('transaction_required', cause === undefined ? {} : { cause })
}

/** The same for an error of the server that says so. */
export function orEnded(error: unknown): unknown {
  return sqlState(error) === NO_TRANSACTION ? ended(error) : error
}

const NO_TRANSACTION = '25P01'
