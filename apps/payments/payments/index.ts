/** Payments: the operations that move money, what clients read, and the workers behind them. */
import { capturePaymentWith } from './capture.ts'
import { createPaymentWith } from './create.ts'
import type { PaymentDoors } from './doors.ts'
import { cancelPaymentWith, expirePaymentWith } from './let-go.ts'
import { refundPaymentWith } from './refund.ts'

export { basisOf, type Decision, decide, evidenceOf } from './decisions.ts'
export type { PaymentDoors } from './doors.ts'
export { windowOf } from './duplicates.ts'
export { type Gateways, gatewayOf, modeOf } from './gateways.ts'
export { forgetPayer, forgetter } from './payers.ts'
export {
  findCurrency,
  findPayment,
  findRefund,
  listPayments,
  listRefunds,
  type PaymentFilter,
} from './read.ts'
export { expirer, marker, sweeper } from './workers.ts'

/** All operations of payments, given what they work with. */
export function paymentOperations(doors: PaymentDoors) {
  return {
    createPayment: createPaymentWith(doors),
    capturePayment: capturePaymentWith(doors),
    cancelPayment: cancelPaymentWith(doors),
    refundPayment: refundPaymentWith(doors),
    expirePayment: expirePaymentWith(doors),
  }
}

export type PaymentOperations = ReturnType<typeof paymentOperations>
