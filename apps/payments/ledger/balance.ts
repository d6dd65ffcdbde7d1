import type { Queryable } from 'onlyonce'
import { AVAILABLE, BALANCES, LOCK_BALANCE } from './sql.ts'

export interface Balance {
  readonly currency: string
  /** What we owe the account. */
  readonly available: bigint
  /** What is held for it and not yet taken. */
  readonly pending: bigint
}

/** All balances of an account, one for each currency that it ever had. */
export async function balances(tx: Queryable, account: string): Promise<readonly Balance[]> {
  const { rows } = await tx.query(BALANCES, [account])
  return rows.map(({ currency, available, pending }) => ({
    currency,
    available: BigInt(available),
    pending: BigInt(pending),
  }))
}

/**
 * Waits for whoever else takes from this balance, until the caller's transaction ends. Everybody who must not overdraw calls it
 * before `availableOf`, in a statement of its own; whoever only adds to the balance does not.
 *
 * In a transaction that is serializable or repeatable read, meeting another debit ends in 40001, and it starts again.
 * `read committed` only waits: better for a balance that many take from at once.
 *
 * @example
 * await lockBalance(tx, account, 'EUR')
 * if ((await availableOf(tx, account, 'EUR')) < BigInt(amount)) return problemReply('balance_insufficient')
 */
export async function lockBalance(tx: Queryable, account: string, currency: string): Promise<void> {
  await tx.query(LOCK_BALANCE, [account, currency])
}

/** What we owe the account in this currency, posted. Only after `lockBalance` is it more than a glance. */
export async function availableOf(tx: Queryable, account: string, currency: string): Promise<bigint> {
  const { rows } = await tx.query(AVAILABLE, [account, currency])
  return BigInt(rows[0].available)
}
