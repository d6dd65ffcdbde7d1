/** What is sent to Stripe. The same order gives the same parameters, always: its keys are bound to them. */
import type Stripe from 'stripe'
import type { AuthorizeOrder, CaptureOrder, RefundOrder } from '../index.ts'
import { captureMetadata, KEY_ENTRY, METADATA_VALUE_MAX } from './metadata.ts'

export function authorizeParams(
  order: AuthorizeOrder,
  key: string,
  paymentMethodTypes: string[],
): Stripe.PaymentIntentCreateParams {
  const { account, amount, currency, payment_method: paymentMethod, capture, payment, reference } = order
  return {
    amount,
    currency: currency.toLowerCase(),
    payment_method: paymentMethod,
    allowed_payment_method_types: paymentMethodTypes,
    capture_method: capture === 'manual' ? 'manual' : 'automatic',
    confirm: true,
    // Nobody is there to authenticate: a card that asks for it declines at once, and no intent stays open.
    error_on_requires_action: true,
    metadata: {
      [KEY_ENTRY]: key,
      account,
      payment,
      ...(reference !== null && { reference: reference.slice(0, METADATA_VALUE_MAX) }),
    },
    ...(capture === 'manual' && {
      payment_method_options: { card: { request_multicapture: 'if_available' } },
    }),
    expand: ['latest_charge'],
  }
}

export function captureParams(order: CaptureOrder, key: string): Stripe.PaymentIntentCaptureParams {
  const { amount, capture, final } = order
  return {
    amount_to_capture: amount,
    metadata: captureMetadata({ amount, capture, key }),
    // Final is what Stripe does by itself; only cards with several captures take this parameter at all.
    ...(!final && { final_capture: false }),
  }
}

export function refundParams(order: RefundOrder, key: string): Stripe.RefundCreateParams {
  const { account, gateway_id: gatewayId, amount, reason, refund } = order
  return {
    payment_intent: gatewayId,
    amount,
    ...(reason !== null && { reason }),
    metadata: { [KEY_ENTRY]: key, account, refund },
  }
}
