import type { Onlyonce, Queryable } from 'onlyonce'
import type { PostgresTx } from 'onlyonce/postgres'
import { firstIdAt } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { type Metadata, type PaymentRow, presentPayment, presentRefund, type RefundRow } from './rows.ts'
import { LIST_PAYMENTS, LIST_REFUNDS, SELECT_CURRENCY, SELECT_PAYMENT, SELECT_REFUND } from './sql.ts'
import type { Status } from './state.ts'

/** A payment as it is now. One whose outcome nobody knows is shown so at once, before a worker has noted it. */
export async function findPayment(
  { once, pool }: { readonly once: Onlyonce<PostgresTx>; readonly pool: Queryable },
  account: string,
  id: string,
) {
  const { rows } = await pool.query(SELECT_PAYMENT, [account, id])
  const row = rows[0] as PaymentRow | undefined
  if (row === undefined) return null
  if (row.status !== 'processing') return presentPayment(row)
  const { state } = await once.explain({ account, operation: 'payments.create', key: row.idempotency_key })
  const inDoubt = state === 'unknown' || state === 'parked'
  return presentPayment(inDoubt ? { ...row, status: 'unknown' } : row)
}

/** Neither it nor whether there is such a payment ever changes. Null where there is none. */
export async function findCurrency(tx: Queryable, account: string, id: string): Promise<string | null> {
  const { rows } = await tx.query(SELECT_CURRENCY, [account, id])
  return (rows as { currency: string }[])[0]?.currency ?? null
}

export interface PaymentFilter {
  readonly status: Status | null
  readonly reference: string | null
  readonly metadata: Metadata | null
  readonly from: string | null
  readonly to: string | null
}

/** Newest first, those behind `before`. */
export async function listPayments(
  tx: Queryable,
  account: string,
  { status, reference, metadata, from, to }: PaymentFilter,
  before: string | null,
  limit: number,
) {
  const wanted = metadata === null ? null : JSON.stringify(metadata)
  const first = from === null ? null : firstIdAt('pay', Date.parse(from) - LIMITS.clockDifferenceMs)
  const last = to === null ? null : firstIdAt('pay', Date.parse(to) + LIMITS.clockDifferenceMs)
  const values = [account, status, reference, wanted, from, to, before, limit, first, last]
  return ((await tx.query(LIST_PAYMENTS, values)).rows as PaymentRow[]).map(presentPayment)
}

/** Null where this payment of the account has no such refund. */
export async function findRefund(tx: Queryable, account: string, payment: string, id: string) {
  const { rows } = await tx.query(SELECT_REFUND, [account, payment, id])
  const row = rows[0] as RefundRow | undefined
  return row === undefined ? null : presentRefund(row)
}

export async function listRefunds(
  tx: Queryable,
  account: string,
  payment: string,
  before: string | null,
  limit: number,
) {
  const { rows } = await tx.query(LIST_REFUNDS, [account, payment, before, limit])
  return (rows as RefundRow[]).map(presentRefund)
}
