import { notExecuted, type Op, OperationReply, operation, type Queryable, reply } from 'onlyonce'
import type { Authorized, AuthorizeOrder, Decline } from '../gateway/index.ts'
import { firstIdAt, makeId, timeOfId } from '../ids.ts'
import { authorizationLines, captureLines, post } from '../ledger/index.ts'
import { LIMITS } from '../limits.ts'
import { problemReply } from '../problems.ts'
import type { PaymentDoors } from './doors.ts'
import { findEarlier, makeRoomOf, refuseDuplicate, windowOf } from './duplicates.ts'
import { boundsOf, gatewayOf } from './gateways.ts'
import type { Settling } from './reservations.ts'
import { type Metadata, type PaymentRow, presentPayment, viewDecline, withoutMetadata } from './rows.ts'
import { INSERT_PAYMENT, SETTLE_PAYMENT } from './sql.ts'
import { tellTaken } from './taken.ts'

/** What a client asks for, checked. */
export interface CreatePayment {
  readonly amount: number
  readonly currency: string
  readonly payment_method: string
  readonly capture_method: 'automatic' | 'manual'
  readonly payer: string | null
  readonly reference: string | null
  readonly metadata: Metadata
  /** At most one payment of the account has it that is under way or has succeeded. */
  readonly unique_reference: string | null
  /** What becomes of one with the payer, amount and reference of another. Null: as the account says. */
  readonly duplicates: 'warn' | 'refuse' | null
}

/**
 * A payment: written down, authorized at the processor, settled. The row is there before the processor is asked, so that a
 * payment in doubt can be seen; and whether it may be made beside others is decided there, by an index.
 *
 * Read committed, because nothing here depends on what others write at the same time: rows are new, or are judged by the
 * condition of their UPDATE.
 */
export const createPaymentWith = (doors: PaymentDoors) =>
  operation('payments.create', async (op, input: CreatePayment) => {
    const { gateways } = doors
    const attempt = doors.begin(op)
    let refused = false
    const insert = async (tx: Queryable) => {
      attempt.begins()
      const inserted = await insertPayment(tx, op, input, doors)
      refused = inserted instanceof OperationReply
      return inserted
    }
    // A refusal that is not stored does not come back here: the step ends the function.
    const told = () => (refused ? attempt.cameToNothing() : attempt.hasBegun())
    const created = await op.transaction('created', insert, READ_COMMITTED).finally(told)
    if (created instanceof OperationReply) return created
    const { id } = created
    const gateway = gatewayOf(gateways, op.account)
    const { amount, currency, payment_method: paymentMethod, reference } = input
    const order: AuthorizeOrder = {
      account: op.account,
      payment: id,
      amount,
      currency,
      payment_method: paymentMethod,
      capture: input.capture_method,
      reference,
    }
    const authorized = await op
      .call('authorized', {
        call: (context) => attempt.tries(() => gateway.authorize(order, context)),
        find: (context) => gateway.findAuthorization(order, context),
        ...boundsOf(gateway),
      })
      .finally(() => attempt.hasTried())
    return op
      .transaction(
        'settled',
        (tx) => settlePayment(tx, op, id, authorized, windowMs(doors, op)),
        READ_COMMITTED,
      )
      .catch(tellTaken(doors.pool, op, authorized.gateway_id))
  })

const READ_COMMITTED = { isolation: 'read committed' } as const

/** The insert decides. What is in the way is cleared away if nothing became of it, a bounded number of times. */
async function insertPayment(tx: Queryable, op: Op, input: CreatePayment, doors: PaymentDoors) {
  const id = makeId('pay')
  const lookBackMs = windowMs(doors, op)
  let guarded = await tryInsert(tx, op, id, input, doors)
  for (let looks = 0; looks < LIMITS.duplicateLooksMax; looks += 1) {
    if (guarded === false) return { id }
    const earlier = await findEarlier(tx, op, id, input, lookBackMs)
    if (earlier.length === 0 && guarded === true) return { id }
    const stays = await makeRoomOf(tx, op, doors.desk, earlier)
    if (stays !== null) return refuseDuplicate(stays)
    guarded ??= await tryInsert(tx, op, id, input, doors)
  }
  // None of them is known to stay in the way, so none can be named as the payment that exists.
  throw notExecuted(new Error('Too many payments with the same intent were left, or come and go.'))
}

/** Whether it refuses others with its intent, and so has to look for those that were made without asking; null: one is in the way. */
async function tryInsert(
  tx: Queryable,
  op: Op,
  id: string,
  input: CreatePayment,
  { gateways }: PaymentDoors,
): Promise<boolean | null> {
  const { rows } = await tx.query(INSERT_PAYMENT, [
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
    input.unique_reference,
    input.duplicates,
  ])
  return (rows as { refuses_duplicates: boolean }[])[0]?.refuses_duplicates ?? null
}

function windowMs({ retentionMs, gateways }: PaymentDoors, { account }: Pick<Op, 'account'>): number {
  return windowOf(retentionMs, gatewayOf(gateways, account).keyLifetimeMs)
}

/** What the processor said, or a person who has asked it, is written down and posted. */
export async function settlePayment(
  tx: Queryable,
  by: Settling,
  id: string,
  result: Authorized | Decline,
  lookBackMs: number = LIMITS.duplicateWindowMs,
) {
  const declined = result.status === 'declined'
  const captured = result.status === 'captured' ? result.amount : 0
  const held = result.status === 'authorized' ? result.amount : 0
  const status = declined ? 'failed' : captured > 0 ? 'succeeded' : 'requires_capture'
  const { rows } = await tx.query(SETTLE_PAYMENT, [
    by.account,
    id,
    status,
    result.gateway_id,
    captured,
    held,
    declined ? null : result.capture_before,
    declined ? JSON.stringify(viewDecline(result)) : null,
    result.status,
    Math.ceil(lookBackMs / 60_000),
    // Twice as far as is looked, for clocks that differ.
    firstIdAt('pay', timeOfId(id) - 2 * lookBackMs),
  ])
  const payment = rows[0] as PaymentRow
  const { account } = by
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
  await by.emit(
    tx,
    `payment.${status === 'requires_capture' ? 'authorized' : status}`,
    withoutMetadata(view),
    { aggregate },
  )
  if (payment.duplicate_of !== null)
    await by.emit(tx, 'payment.duplicate_suspected', withoutMetadata(view), { aggregate })
  if (!declined) return reply(201, view, { location: `/v1/payments/${id}` })
  return problemReply('payment_declined', {
    detail: result.message,
    more: { decline: view.decline, payment: view },
  })
}
