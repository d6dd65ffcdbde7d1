/** One order under many keys: what is refused, and what it takes to be let through. */
import type { Op, Queryable } from 'onlyonce'
import type { Operator } from 'onlyonce/operator'
import { LIMITS } from '../limits.ts'
import { problemReply } from '../problems.ts'
import type { CreatePayment } from './create.ts'
import { giveUp, NOT_EXECUTED } from './giving-up.ts'
import { type PaymentRow, presentPayment, withoutMetadata } from './rows.ts'
import { FIND_EARLIER, FORGET_INTENT } from './sql.ts'
import { DROP_PAYMENT } from './sql-unsettled.ts'

/** A payment that a new one would repeat. */
export interface Earlier {
  readonly id: string
  readonly status: PaymentRow['status']
  readonly idempotency_key: string
  /** By which member of the request it is the same. */
  readonly field: 'reference' | 'unique_reference'
  /** Its time is over: it has succeeded so long ago that the same order may come again. */
  readonly over: boolean
}

/** A page of them: requests that were not executed may have left any number. */
export async function findEarlier(
  tx: Queryable,
  { account }: Pick<Op, 'account'>,
  id: string,
  input: CreatePayment,
  windowMs: number,
): Promise<readonly Earlier[]> {
  const { rows } = await tx.query(FIND_EARLIER, [
    account,
    id,
    input.unique_reference,
    input.reference,
    input.amount,
    input.currency,
    input.payer ?? input.payment_method,
    input.duplicates,
    Math.ceil(windowMs / 60_000),
    LIMITS.duplicatesClearedMax,
  ])
  return rows as Earlier[]
}

/** Makes room as below, for all of them. Null, or else the first that stays in the way. */
export async function makeRoomOf(
  tx: Queryable,
  op: Op,
  desk: Operator,
  all: readonly Earlier[],
): Promise<Earlier | null> {
  for (const earlier of all) if (!(await makeRoom(tx, op, desk, earlier))) return earlier
  return null
}

/** Makes room for the same order, if nothing became of the earlier one or its time is over. False: it stays in the way. */
async function makeRoom(tx: Queryable, op: Op, desk: Operator, earlier: Earlier): Promise<boolean> {
  const { account } = op
  const { id, status, idempotency_key: key } = earlier
  if (earlier.over) {
    await tx.query(FORGET_INTENT, [account, id])
    return true
  }
  if (status !== 'processing' && status !== 'unknown') return false
  const record = { account, operation: op.operation, key }
  if (!(await giveUp(tx, desk, record, `${op.operation} ${op.key}`))) return false
  const { rows } = await tx.query(DROP_PAYMENT, [account, id, NOT_EXECUTED])
  const view = presentPayment(rows[0] as PaymentRow)
  await op.emit(tx, 'payment.failed', withoutMetadata(view), { aggregate: `payment:${id}` })
  return true
}

/** It is not stored: when the earlier payment is declined or canceled, the same request with the same key goes through. */
export function refuseDuplicate({ id, status, field }: Earlier) {
  const detail = `${field === 'reference' ? 'The same payment' : 'A payment with this unique_reference'} exists: ${id} is ${status}.`
  return problemReply('duplicate_intent', { detail, field, more: { payment: id, payment_status: status } })
}

/**
 * How long a payment that has succeeded keeps others with its intent out. No shorter than its key replays: when the record is
 * gone, the same key is a new request.
 */
export function windowOf(retentionMs: number, keyLifetimeMs: number): number {
  const { duplicateWindowMs, duplicateMarginMs } = LIMITS
  return Math.max(duplicateWindowMs, retentionMs + duplicateMarginMs, keyLifetimeMs + duplicateMarginMs)
}
