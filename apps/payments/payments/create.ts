import { type Op, operation, type Queryable, reply } from 'onlyonce'
import type { Authorized, AuthorizeOrder, Decline } from '../gateway/index.ts'
import { firstIdAt, makeId, timeOfId } from '../ids.ts'
import { authorizationLines, captureLines, post } from '../ledger/index.ts'
import { LIMITS } from '../limits.ts'
import { problemReply } from '../problems.ts'
import { boundsOf, type Gateways, gatewayOf } from './gateways.ts'
import { type Metadata, type PaymentRow, presentPayment, viewDecline } from './rows.ts'
import { INSERT_PAYMENT, SETTLE_PAYMENT } from './sql.ts'

/** What a client asks for, checked. */
export interface CreatePayment {
  readonly amount: number
  readonly currency: string
  readonly payment_method: string
  readonly capture_method: 'automatic' | 'manual'
  readonly payer: string | null
  readonly reference: string | null
  readonly metadata: Metadata
}

/**
 * A payment: written down, authorized at the processor, settled. The row is there before the processor is asked, so that a
 * payment in doubt can be seen.
 *
 * Read committed, because nothing here depends on what others write at the same time: rows are new, or are judged by the
 * condition of their UPDATE.
 */
export const createPaymentWith = (gateways: Gateways) =>
  operation('payments.create', async (op, input: CreatePayment) => {
    const { id } = await op.atomic('created', (tx) => insertPayment(tx, op, input, gateways), READ_COMMITTED)
    const gateway = gatewayOf(gateways, op.account)
    const { amount, currency, payment_method, reference } = input
    const order: AuthorizeOrder = {
      account: op.account,
      payment: id,
      amount,
      currency,
      payment_method,
      capture: input.capture_method,
      reference,
    }
    const authorized = await op.foreign('authorized', {
      call: (context) => gateway.authorize(order, context),
      find: (context) => gateway.findAuthorization(order, context),
      ...boundsOf(gateway),
    })
    return op.atomic('settled', (tx) => settlePayment(tx, op, id, authorized), READ_COMMITTED)
  })

const READ_COMMITTED = { isolation: 'read committed' } as const

async function insertPayment(tx: Queryable, op: Op, input: CreatePayment, gateways: Gateways) {
  const id = makeId('pay')
  await tx.query(INSERT_PAYMENT, [
    op.account,
    id,
    input.amount,
    input.currency,
    input.capture_method,
    input.payment_method,
    input.payer,
    input.reference,
    JSON.stringify(input.metadata),
    op.key,
    gatewayOf(gateways, op.account).name,
  ])
  return { id }
}

async function settlePayment(tx: Queryable, op: Op, id: string, result: Authorized | Decline) {
  const declined = result.status === 'declined'
  const captured = result.status === 'captured' ? result.amount : 0
  const held = result.status === 'authorized' ? result.amount : 0
  const status = declined ? 'failed' : captured > 0 ? 'succeeded' : 'requires_capture'
  const { rows } = await tx.query(SETTLE_PAYMENT, [
    op.account,
    id,
    status,
    result.gateway_id,
    captured,
    held,
    declined ? null : result.capture_before,
    declined ? JSON.stringify(viewDecline(result)) : null,
    result.status,
    LIMITS.duplicate_intent_minutes,
    // Twice as far as is looked, for clocks that differ.
    firstIdAt('pay', timeOfId(id) - 2 * 60_000 * LIMITS.duplicate_intent_minutes),
  ])
  const payment = rows[0] as PaymentRow
  const { account } = op
  if (captured > 0) {
    const lines = captureLines({ amount: captured, currency: payment.currency })
    await post(tx, { account, kind: 'capture', source: id, state: 'posted', lines })
  }
  if (held > 0) {
    const lines = authorizationLines({ amount: held, currency: payment.currency })
    await post(tx, { account, kind: 'authorization', source: id, state: 'pending', lines })
  }
  const view = presentPayment(payment)
  const aggregate = `payment:${id}`
  await op.emit(tx, `payment.${status === 'requires_capture' ? 'authorized' : status}`, view, { aggregate })
  if (payment.duplicate_of !== null) await op.emit(tx, 'payment.duplicate_suspected', view, { aggregate })
  if (!declined) return reply(201, view, { location: `/v1/payments/${id}` })
  return problemReply('payment_declined', {
    detail: result.message,
    more: { decline: view.decline, payment: view },
  })
}
