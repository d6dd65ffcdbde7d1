import { type Op, operation, type Queryable, reply } from 'onlyonce'
import type { Decline, Refunded, RefundOrder } from '../gateway/index.ts'
import { makeId } from '../ids.ts'
import { post, refundLines } from '../ledger/index.ts'
import { problemReply } from '../problems.ts'
import type { PaymentDoors } from './doors.ts'
import { boundsOf, gatewayOf } from './gateways.ts'
import { lockPayment, ONE_AT_A_TIME, paymentNotFound } from './locked.ts'
import { freeRefunds, type Settling } from './reservations.ts'
import {
  type Metadata,
  type PaymentRow,
  presentRefund,
  type RefundRow,
  viewDecline,
  withoutMetadata,
} from './rows.ts'
import { RESERVE_REFUND, SETTLE_REFUND } from './sql.ts'
import { tellTaken } from './taken.ts'

export interface RefundPayment {
  readonly payment: string
  /** Null is all that is left. */
  readonly amount: number | null
  readonly reason: RefundOrder['reason']
  readonly metadata: Metadata
}

interface Reserved {
  readonly refund: string
  readonly gateway_id: string
  readonly amount: number
  readonly currency: string
}

/** A refund: so much is reserved, given back at the processor, settled. Others of which nothing became are given up for it. */
export const refundPaymentWith = (doors: PaymentDoors) =>
  operation('refunds.create', async (op, input: RefundPayment) => {
    const { gateways } = doors
    const attempt = doors.begin(op)
    const begin = (tx: Queryable) => {
      attempt.begins()
      return reserve(tx, op, input, doors)
    }
    const reserved = await op.transaction('reserved', begin, ONE_AT_A_TIME).finally(() => attempt.hasBegun())
    if ('status' in reserved) return reserved
    const gateway = gatewayOf(gateways, op.account)
    const order = { account: op.account, reason: input.reason, ...reserved }
    const refunded = await op.call('refunded', {
      call: (context) => gateway.refund(order, context),
      find: (context) => gateway.findRefund(order, context),
      ...boundsOf(gateway),
    })
    return op
      .transaction('settled', (tx) => settleRefund(tx, op, input.payment, reserved, refunded), ONE_AT_A_TIME)
      .catch(tellTaken(doors.pool, op, refunded.gateway_id))
  })

async function reserve(
  tx: Queryable,
  op: Op,
  { payment: id, amount, reason, metadata }: RefundPayment,
  { desk }: PaymentDoors,
) {
  const found = await lockPayment(tx, op, id)
  if (found === null) return paymentNotFound()
  if (found.captured === 0) {
    const detail = `The payment is ${found.status}: nothing was taken that could be given back.`
    return problemReply('payment_state', { detail, more: { payment_status: found.status } })
  }
  const needed = (amount ?? found.captured) - leftOf(found)
  const payment = await freeRefunds(tx, op, desk, found, needed)
  const left = leftOf(payment)
  const wanted = amount ?? left
  if (wanted > left || left === 0) {
    const detail = `${left} of ${payment.captured} can still be refunded.`
    return problemReply('amount_too_large', { detail, field: 'amount', more: { amount_refundable: left } })
  }
  const reserved: Reserved = {
    refund: makeId('ref'),
    gateway_id: payment.gateway_id!,
    amount: wanted,
    currency: payment.currency,
  }
  const values = [op.account, id, wanted, reserved.refund, reason, JSON.stringify(metadata), op.key]
  await tx.query(RESERVE_REFUND, values)
  return reserved
}

const leftOf = ({ captured, refunded, refunding }: PaymentRow) => captured - refunded - refunding

/** What the processor said, or a person who has asked it, is written down and posted. */
export async function settleRefund(
  tx: Queryable,
  by: Settling,
  id: string,
  reserved: Omit<Reserved, 'gateway_id'>,
  result: Refunded | Decline,
) {
  const { account } = by
  const { refund: source, amount, currency } = reserved
  const declined = result.status === 'declined'
  const { rows } = await tx.query(SETTLE_REFUND, [
    account,
    id,
    source,
    declined ? 'failed' : 'succeeded',
    declined ? JSON.stringify(viewDecline(result)) : null,
    amount,
    declined ? 0 : amount,
    // Nobody need know it who tells that it was refunded.
    result.gateway_id || null,
  ])
  const view = presentRefund(rows[0] as RefundRow)
  const aggregate = `payment:${id}`
  if (declined) {
    await by.emit(tx, 'refund.failed', withoutMetadata(view), { aggregate })
    return problemReply('refund_failed', {
      detail: result.message,
      more: { decline: view.decline, refund: view },
    })
  }
  await post(tx, {
    account,
    kind: 'refund',
    source,
    state: 'posted',
    lines: refundLines({ amount, currency }),
  })
  await by.emit(tx, 'payment.refunded', withoutMetadata(view), { aggregate })
  return reply(201, view, { location: `/v1/payments/${id}/refunds/${source}` })
}
