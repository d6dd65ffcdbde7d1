/** What requests hold of a payment while the processor is asked, and how it is given to others who need it. */
import type { Op, Queryable } from 'onlyonce'
import type { Operator } from 'onlyonce/operator'
import { LIMITS } from '../limits.ts'
import { giveUp, NOT_EXECUTED } from './giving-up.ts'
import { closingBy, isOpen, lockPayment } from './locked.ts'
import { type PaymentRow, presentRefund, type RefundRow, withoutMetadata } from './rows.ts'
import * as sql from './sql-unsettled.ts'

/** Whose books something is settled in, and how it is told. An operation is one. */
export type Settling = Pick<Op, 'account' | 'emit'>

interface UnderWay {
  readonly id: string
  readonly key: string
  readonly amount: number
}

const CAPTURE = 'payments.capture'
const REFUND = 'refunds.create'

/**
 * Whoever lets go of the rest of a payment, and was proved not to have reached the processor, is given up. The payment is locked,
 * and what is returned is what it is then.
 */
export async function freeClosing(
  tx: Queryable,
  op: Op,
  desk: Operator,
  payment: PaymentRow,
): Promise<PaymentRow> {
  const { closing } = payment
  if (closing === null || !isOpen(payment)) return payment
  const { operation, key } = readClosing(closing)
  // It is dropped with the capture that holds it.
  if (operation === CAPTURE) return await freeCaptures(tx, op, desk, payment, Number.POSITIVE_INFINITY, key)
  if (!(await mayDrop(tx, op, desk, operation, key))) return payment
  await dropClosing(tx, op, payment.id, closing)
  return (await lockPayment(tx, op, payment.id))!
}

/** The same for captures under way, until so much is free; of one key alone, where one is named. */
export async function freeCaptures(
  tx: Queryable,
  op: Op,
  desk: Operator,
  payment: PaymentRow,
  needed: number,
  ofKey: string | null = null,
): Promise<PaymentRow> {
  if (payment.capturing === 0 || needed <= 0) return payment
  const drop = ({ id }: UnderWay) => dropCapture(tx, op, payment.id, id)
  const one = (found: UnderWay) => ofKey === null || found.key === ofKey
  return await free(tx, op, desk, payment, {
    needed,
    operation: CAPTURE,
    list: sql.CAPTURES_UNDER_WAY,
    drop,
    one,
  })
}

/** The same for refunds under way. */
export async function freeRefunds(
  tx: Queryable,
  op: Op,
  desk: Operator,
  payment: PaymentRow,
  needed: number,
): Promise<PaymentRow> {
  if (payment.refunding === 0 || needed <= 0) return payment
  const drop = ({ id }: UnderWay) => dropRefund(tx, op, payment.id, id)
  const one = () => true
  return await free(tx, op, desk, payment, {
    needed,
    operation: REFUND,
    list: sql.REFUNDS_UNDER_WAY,
    drop,
    one,
  })
}

interface Freeing {
  readonly needed: number
  readonly operation: string
  readonly list: string
  readonly drop: (found: UnderWay) => Promise<void>
  readonly one: (found: UnderWay) => boolean
}

async function free(
  tx: Queryable,
  op: Op,
  desk: Operator,
  payment: PaymentRow,
  { needed, operation, list, drop, one }: Freeing,
): Promise<PaymentRow> {
  const { rows } = await tx.query(list, [op.account, payment.id, LIMITS.reservationsLookedAtMax])
  let freed = 0
  for (const found of (rows as UnderWay[]).filter(one)) {
    if (freed >= needed) break
    if (!(await mayDrop(tx, op, desk, operation, found.key))) continue
    await drop(found)
    freed += found.amount
  }
  return freed === 0 ? payment : (await lockPayment(tx, op, payment.id))!
}

/** Under the key of the very request that asks it is of a record that is gone: the key is a new request's by now. */
async function mayDrop(
  tx: Queryable,
  op: Op,
  desk: Operator,
  operation: string,
  key: string,
): Promise<boolean> {
  if (operation === op.operation && key === op.key) return true
  return await giveUp(tx, desk, { account: op.account, operation, key }, closingBy(op))
}

/** Nothing became of a capture, and nobody can come back to it. */
export async function dropCapture(tx: Queryable, by: Settling, payment: string, id: string): Promise<void> {
  await tx.query(sql.DROP_CAPTURE, [by.account, payment, id, NOT_EXECUTED])
}

export async function dropRefund(tx: Queryable, by: Settling, payment: string, id: string): Promise<void> {
  const { rows } = await tx.query(sql.DROP_REFUND, [by.account, payment, id, NOT_EXECUTED])
  const row = rows[0] as RefundRow | undefined
  if (row === undefined) return
  await by.emit(tx, 'refund.failed', withoutMetadata(presentRefund(row)), { aggregate: `payment:${payment}` })
}

/** A worker that let go of a payment whose time was over tries again later, under another key. */
export async function dropClosing(
  tx: Queryable,
  by: Settling,
  payment: string,
  closing: string,
  since: string | null = null,
): Promise<void> {
  await tx.query(sql.DROP_CLOSING, [by.account, payment, closing, LIMITS.expiryRetryHours, since])
}

/** Operation and key of who lets go of the rest of a payment. */
export function readClosing(closing: string): { readonly operation: string; readonly key: string } {
  const space = closing.indexOf(' ')
  return { operation: closing.slice(0, space), key: closing.slice(space + 1) }
}
