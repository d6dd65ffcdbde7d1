import type { Op, OperationReply, Queryable } from 'onlyonce'
import { problemReply } from '../problems.ts'
import type { PaymentRow } from './rows.ts'
import { LOCK_PAYMENT } from './sql.ts'

/** For steps that judge a payment by its row: who comes at the same time waits for the row, and sees what became of it. */
export const ONE_AT_A_TIME = { isolation: 'read committed' } as const

export async function lockPayment(
  tx: Queryable,
  { account }: Pick<Op, 'account'>,
  id: string,
): Promise<PaymentRow | null> {
  const { rows } = await tx.query(LOCK_PAYMENT, [account, id])
  return (rows[0] as PaymentRow | undefined) ?? null
}

/** How a payment names who is letting go of its rest. */
export const closingBy = (op: Pick<Op, 'operation' | 'key'>) => `${op.operation} ${op.key}`

/** As the stored outcome of an operation: it is final that nothing happened. */
export const paymentNotFound = () =>
  problemReply('not_found', { detail: 'There is no such payment.', more: { executed: 'no' } })

/** Whether anything is held that could be captured or let go of. */
export function isOpen({ status }: PaymentRow): boolean {
  return status === 'requires_capture' || status === 'partially_captured'
}

/** Why nothing can be captured or let go of. Null when something can. */
export function refuseClosed(payment: PaymentRow): OperationReply<unknown> | null {
  const { status, closing } = payment
  const open = isOpen(payment)
  if (open && closing === null) return null
  const detail = open
    ? 'The rest of the payment is being captured or let go of.'
    : `The payment is ${status}: nothing is held that could be captured or let go of.`
  return problemReply('payment_state', { detail, more: { payment_status: status } })
}
