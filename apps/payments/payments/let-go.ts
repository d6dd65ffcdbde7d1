import { notExecuted, type Op, operation, type Queryable, reply } from 'onlyonce'
import type { Decline, Voided, VoidOrder } from '../gateway/index.ts'
import { LIMITS } from '../limits.ts'
import { problemReply } from '../problems.ts'
import type { PaymentDoors } from './doors.ts'
import { boundsOf, gatewayOf } from './gateways.ts'
import { releaseHeld } from './held.ts'
import { closingBy, isOpen, lockPayment, ONE_AT_A_TIME, paymentNotFound, refuseClosed } from './locked.ts'
import { freeCaptures, freeClosing, type Settling } from './reservations.ts'
import { type PaymentRow, presentPayment, viewDecline, withoutMetadata } from './rows.ts'
import { CLOSE_PAYMENT, REOPEN_PAYMENT, SETTLE_VOID } from './sql.ts'
import { afterLettingGo } from './state.ts'

export interface CancelPayment {
  readonly payment: string
  readonly reason: VoidOrder['reason']
}

/** A client does not want the money any more that is held. */
export const cancelPaymentWith = (doors: PaymentDoors) =>
  operation('payments.cancel', (op, { payment, reason }: CancelPayment) =>
    letGo(op, doors, payment, reason, 'canceled'),
  )

/** The processor holds it no longer than this; a worker asks for it. */
export const expirePaymentWith = (doors: PaymentDoors) =>
  operation('payments.expire', (op, { payment }: { readonly payment: string }) =>
    letGo(op, doors, payment, 'abandoned', 'expired'),
  )

/** The payment is closed to captures, let go of at the processor, settled. */
async function letGo(
  op: Op,
  doors: PaymentDoors,
  id: string,
  reason: VoidOrder['reason'],
  why: 'canceled' | 'expired',
) {
  const attempt = doors.begin(op)
  const begin = (tx: Queryable) => {
    attempt.begins()
    return close(tx, op, doors, id, why)
  }
  const closed = await op.transaction('closed', begin, ONE_AT_A_TIME).finally(() => attempt.hasBegun())
  if ('status' in closed) return closed
  const gateway = gatewayOf(doors.gateways, op.account)
  const order = { gateway_id: closed.gateway_id, reason }
  const voided = await op.call('voided', {
    call: (context) => gateway.void(order, context),
    find: (context) => gateway.findVoid(order, context),
    ...boundsOf(gateway),
  })
  return await op.transaction('settled', (tx) => settleLettingGo(tx, op, id, voided, why), ONE_AT_A_TIME)
}

async function close(tx: Queryable, op: Op, { desk }: PaymentDoors, id: string, why: 'canceled' | 'expired') {
  const found = await lockPayment(tx, op, id)
  if (found === null) return paymentNotFound()
  const opened = await freeClosing(tx, op, desk, found)
  const payment = await freeCaptures(tx, op, desk, opened, opened.capturing)
  // Its key is that of the date: a refusal would be kept under it, and the payment held until that is forgotten.
  if (why === 'expired' && isOpen(payment) && (payment.closing !== null || payment.capturing > 0)) {
    throw notExecuted(new Error('Somebody else is at work on the payment.'))
  }
  const refused = refuseClosed(payment)
  if (refused !== null) return refused
  if (payment.capturing > 0) {
    return problemReply('payment_state', { detail: 'A capture of the payment is under way.' })
  }
  await tx.query(CLOSE_PAYMENT, [op.account, id, closingBy(op)])
  return { gateway_id: payment.gateway_id! }
}

/** What the processor said, or a person who has asked it, is written down and posted. */
export async function settleLettingGo(
  tx: Queryable,
  by: Settling,
  id: string,
  result: Voided | Decline,
  why: 'canceled' | 'expired',
) {
  const { account } = by
  if (result.status === 'declined') {
    const { rows } = await tx.query(REOPEN_PAYMENT, [account, id, LIMITS.expiryRetryHours])
    const payment = presentPayment(rows[0] as PaymentRow)
    const decline = viewDecline(result)
    return problemReply('cancel_failed', { detail: result.message, more: { decline, payment } })
  }
  const before = (await lockPayment(tx, by, id))!
  const { rows } = await tx.query(SETTLE_VOID, [account, id, afterLettingGo(before.captured, why)])
  await releaseHeld(tx, { account, payment: id, source: id, amount: before.held })
  const view = presentPayment(rows[0] as PaymentRow)
  await by.emit(tx, `payment.${why}`, withoutMetadata(view), { aggregate: `payment:${id}` })
  return reply(200, view)
}
