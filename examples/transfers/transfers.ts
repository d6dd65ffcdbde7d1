import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { Problem } from './http.ts'

export interface TransferInput {
  readonly from: string
  readonly to: string
  /** In minor units, for example cents. */
  readonly amount: number
}

/** Both are results. A refusal is stored and replayed too: a retry must not find the money there after all. */
export type TransferResult =
  | ({ readonly result: 'transferred'; readonly id: string } & TransferInput)
  | { readonly result: 'insufficient_funds' }

/** Checked before any key is claimed: a request that is wrong in itself leaves no record. */
export function checkTransfer(body: unknown): TransferInput {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) refuse('Send a JSON object.')
  const { from, to, amount, ...unknown } = body as Record<string, unknown>
  const [stranger] = Object.keys(unknown)
  if (stranger !== undefined)
    refuse(`There is no member ${JSON.stringify(stranger)}: send from, to and amount.`)
  if (!isName(from) || !isName(to) || from === to) refuse('from and to must name two accounts.')
  if (!Number.isSafeInteger(amount) || (amount as number) < 1) {
    refuse('amount must be a positive whole number of minor units, at most 2^53 - 1.')
  }
  return { from, to, amount: amount as number }
}

/** Moves the money. Everything it does is in `tx`, so it happens together with the record of its key. */
export async function transfer(
  tx: PostgresTx,
  customer: string,
  { from, to, amount }: TransferInput,
): Promise<TransferResult> {
  // Always in the same order: two transfers in opposite directions would otherwise wait for each other.
  const { rows } = await tx.query<{ name: string; balance: string }>(
    'SELECT name, balance FROM accounts WHERE customer = $1 AND name IN ($2, $3) ORDER BY name FOR UPDATE',
    [customer, from, to],
  )
  const missing = [from, to].find((name) => !rows.some((row) => row.name === name))
  // Thrown, so rolled back and not stored: once the account exists, the same key may be sent again.
  if (missing !== undefined) throw new Problem(404, 'account_not_found', `There is no account ${missing}.`)
  const debited = rows.find((row) => row.name === from)!
  if (BigInt(debited.balance) < BigInt(amount)) return { result: 'insufficient_funds' }

  const id = randomUUID()
  await tx.query(
    `UPDATE accounts SET balance = balance + CASE name WHEN $2 THEN -$4::bigint ELSE $4::bigint END
     WHERE customer = $1 AND name IN ($2, $3)`,
    [customer, from, to, amount],
  )
  await tx.query(
    'INSERT INTO transfers (customer, id, debited, credited, amount) VALUES ($1, $2, $3, $4, $5)',
    [customer, id, from, to, amount],
  )
  return { result: 'transferred', id, from, to, amount }
}

/** Balances leave as text: a bigint may be larger than a JavaScript number can hold. */
export async function listAccounts(pool: Pool, customer: string): Promise<unknown[]> {
  const text = 'SELECT name, balance::text FROM accounts WHERE customer = $1 ORDER BY name'
  return (await pool.query(text, [customer])).rows
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z0-9_-]{1,64}$/.test(value)
}

function refuse(message: string): never {
  throw new Problem(400, 'transfer_invalid', message)
}
