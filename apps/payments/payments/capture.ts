import { type Op, operation, type Queryable, reply } from 'onlyonce'
import type { Captured, Decline } from '../gateway/index.ts'
import { makeId } from '../ids.ts'
import { captureLines, post } from '../ledger/index.ts'
import { problemReply } from '../problems.ts'
import type { PaymentDoors } from './doors.ts'
import { boundsOf, gatewayOf } from './gateways.ts'
import { releaseHeld } from './held.ts'
import { closingBy, lockPayment, ONE_AT_A_TIME, paymentNotFound, refuseClosed } from './locked.ts'
import { freeCaptures, freeClosing, type Settling } from './reservations.ts'
import { type PaymentRow, presentPayment, viewDecline, withoutMetadata } from './rows.ts'
import { RESERVE_CAPTURE, SETTLE_CAPTURE } from './sql.ts'
import { afterCapture } from './state.ts'

export interface CapturePayment {
  readonly payment: string
  /** Null is all that is left. */
  readonly amount: number | null
  /** Lets go of the rest. Null: when it takes all that is held. */
  readonly final: boolean | null
}

interface Reserved {
  readonly capture: string
  readonly gateway_id: string
  readonly amount: number
  readonly currency: string
  readonly final: boolean
}

/**
 * A capture: so much is reserved, taken at the processor, settled. What others have reserved is not there to be taken, unless it is
 * proved that nothing became of them: then they are given up.
 */
export const capturePaymentWith = (doors: PaymentDoors) =>
  operation('payments.capture', async (op, input: CapturePayment) => {
    const { gateways } = doors
    const attempt = doors.begin(op)
    const begin = (tx: Queryable) => {
      attempt.begins()
      return reserve(tx, op, input, doors)
    }
    const reserved = await op.transaction('reserved', begin, ONE_AT_A_TIME).finally(() => attempt.hasBegun())
    if ('status' in reserved) return reserved
    const gateway = gatewayOf(gateways, op.account)
    const captured = await op.call('captured', {
      call: (context) => gateway.capture(reserved, context),
      find: (context) => gateway.findCapture(reserved, context),
      ...boundsOf(gateway),
    })
    return op.transaction(
      'settled',
      (tx) => settleCapture(tx, op, input.payment, reserved, captured),
      ONE_AT_A_TIME,
    )
  })

async function reserve(
  tx: Queryable,
  op: Op,
  { payment: id, amount, final }: CapturePayment,
  { desk }: PaymentDoors,
) {
  const found = await lockPayment(tx, op, id)
  if (found === null) return paymentNotFound()
  const opened = await freeClosing(tx, op, desk, found)
  const refused = refuseClosed(opened)
  if (refused !== null) return refused
  const needed = (amount ?? opened.amount) - leftOf(opened)
  const payment = await freeCaptures(tx, op, desk, opened, needed)
  const left = leftOf(payment)
  const wanted = amount ?? left
  if (wanted > left || left === 0) {
    const detail = `${left} of ${payment.amount} can still be captured.`
    return problemReply('amount_too_large', { detail, field: 'amount', more: { amount_capturable: left } })
  }
  const reserved: Reserved = {
    capture: makeId('cap'),
    gateway_id: payment.gateway_id!,
    amount: wanted,
    currency: payment.currency,
    // Not the last one while others are under way: whichever comes first would let go of what the others take.
    final: final ?? wanted === payment.amount - payment.captured,
  }
  const closing = reserved.final ? closingBy(op) : null
  await tx.query(RESERVE_CAPTURE, [op.account, id, wanted, reserved.final, reserved.capture, op.key, closing])
  return reserved
}

const leftOf = ({ amount, captured, capturing }: PaymentRow) => amount - captured - capturing

/** What the processor said, or a person who has asked it, is written down and posted. */
export async function settleCapture(
  tx: Queryable,
  by: Settling,
  id: string,
  reserved: Omit<Reserved, 'gateway_id'>,
  result: Captured | Decline,
) {
  const before = (await lockPayment(tx, by, id))!
  const declined = result.status === 'declined'
  const captured = declined ? 0 : reserved.amount
  const released = declined ? 0 : reserved.final ? before.held : Math.min(captured, before.held)
  const { rows } = await tx.query(SETTLE_CAPTURE, [
    by.account,
    id,
    reserved.capture,
    declined ? 'failed' : 'succeeded',
    declined ? JSON.stringify(viewDecline(result)) : null,
    reserved.amount,
    captured,
    released,
    declined ? before.status : statusAfter(before, captured, reserved.final),
    reserved.final ? null : before.closing,
  ])
  const payment = rows[0] as PaymentRow
  const view = presentPayment(payment)
  if (declined) {
    return problemReply('capture_failed', {
      detail: result.message,
      more: { decline: viewDecline(result), payment: view },
    })
  }
  const { account } = by
  const { capture: source, currency } = reserved
  const lines = captureLines({ amount: captured, currency })
  await post(tx, { account, kind: 'capture', source, state: 'posted', lines })
  if (released > 0) await releaseHeld(tx, { account, payment: id, source, amount: released })
  await by.emit(tx, 'payment.captured', withoutMetadata(view), { aggregate: `payment:${id}` })
  return reply(200, view)
}

/** One that was under way beside the final one may end after it: the payment has succeeded by then, and stays so. */
function statusAfter(before: PaymentRow, captured: number, final: boolean) {
  if (before.status === 'succeeded') return before.status
  return afterCapture(before.captured + captured, before.amount, final)
}
