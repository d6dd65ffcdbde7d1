/** What the blocks about the payment service take as given. */
import type Stripe from 'stripe'
import type { Gateway } from '../../../apps/payments/gateway/index.ts'
import { evidenceOf, stripeGateway } from '../../../apps/payments/gateway/stripe.ts'
import { availableOf, lockBalance, post, transferOutLines } from '../../../apps/payments/ledger/index.ts'
import { problemReply } from '../../../apps/payments/problems.ts'
import { reconcile, renderTable } from '../../../apps/payments/reconcile/index.ts'
import type { Op } from '../../../src/index.ts'

export {
  availableOf,
  evidenceOf,
  lockBalance,
  post,
  problemReply,
  reconcile,
  renderTable,
  stripeGateway,
  transferOutLines,
}
export declare const gateway: Gateway
export declare const event: Stripe.Event
export declare const service: Parameters<typeof reconcile>[0]
export declare const from: Date
export declare const to: Date
export declare const op: Op
export declare const amount: number
export declare const money: { amount: number; currency: 'EUR' }
export declare const capture: { readonly id: string }
export declare const transfer: { readonly id: string }
