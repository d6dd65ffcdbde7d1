import { type Static, Type } from 'typebox'
import { AMOUNT_MAX } from '../money/index.ts'
import { STATUSES } from './state.ts'

/** What requests and answers about payments look like: these validate, and the OpenAPI document is made of them. */

const closed = { additionalProperties: false } as const
/** PostgreSQL keeps no NUL in text, and a control character has no place in a name. */
const text = (max: number, description: string) =>
  Type.String({ minLength: 1, maxLength: max, pattern: '^[^\\u0000-\\u001f\\u007f]+$', description })
const orNull = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])

export const Amount = Type.Integer({
  minimum: 1,
  maximum: AMOUNT_MAX,
  description: 'In minor units: 1050 is 10.50 of a currency with two decimals, and 1050 of one with none.',
})
export const Currency = Type.String({ pattern: '^[A-Za-z]{3}$', description: 'ISO 4217.' })
export const Reference = text(200, 'Yours: an order, an invoice.')
/** Whoever copies members in JavaScript would set a prototype by that one. */
export const METADATA_NAME = '(?!__proto__$|__proto__\\])[A-Za-z0-9_.-]{1,40}'
const METADATA_FORM =
  'Up to 20 texts of your own, each of at most 500 characters. A name has 1 to 40 of the characters A-Z, a-z, 0-9, _, . and -, and is not __proto__.'
export const Metadata = Type.Record(
  Type.String({ pattern: `^${METADATA_NAME}$` }),
  Type.String({ maxLength: 500, pattern: '^[^\\u0000]*$' }),
  { maxProperties: 20, additionalProperties: false, description: METADATA_FORM },
)
export const PaymentId = Type.String({ pattern: '^pay_[0-9a-f]{32}$' })
export const RefundId = Type.String({ pattern: '^ref_[0-9a-f]{32}$' })

export const CreatePaymentBody = Type.Object(
  {
    amount: Amount,
    currency: Currency,
    payment_method: Type.String({
      minLength: 1,
      maxLength: 255,
      // What is accepted is kept, shown and told to webhook endpoints: a card number never gets that far.
      pattern: '^(?!.*[0-9]{12})[A-Za-z][A-Za-z0-9_]*$',
      description: "A token of the processor's, such as pm_card_visa. Never a card number.",
    }),
    capture_method: Type.Optional(Type.Enum(['automatic', 'manual'])),
    payer: Type.Optional(text(200, 'Who pays, by a name of yours: for noticing duplicates.')),
    reference: Type.Optional(Reference),
    unique_reference: Type.Optional(
      text(200, 'At most one payment of the account has it that is under way or has succeeded.'),
    ),
    duplicates: Type.Optional(
      Type.Enum(['warn', 'refuse'], {
        description:
          'What becomes of a payment with the payer, amount and reference of another. Default: as the account says.',
      }),
    ),
    metadata: Type.Optional(Metadata),
  },
  { ...closed, $id: 'CreatePayment' },
)
export type CreatePaymentBody = Static<typeof CreatePaymentBody>

export const CaptureBody = Type.Object(
  {
    amount: Type.Optional(Amount),
    final: Type.Optional(
      Type.Boolean({ description: 'Lets go of the rest. Default: when it takes all that is held.' }),
    ),
  },
  { ...closed, $id: 'CapturePayment' },
)
export type CaptureBody = Static<typeof CaptureBody>

export const CancelBody = Type.Object(
  {
    reason: Type.Optional(Type.Enum(['requested_by_customer', 'abandoned', 'duplicate', 'fraudulent'])),
  },
  { ...closed, $id: 'CancelPayment' },
)
export type CancelBody = Static<typeof CancelBody>

export const RefundBody = Type.Object(
  {
    amount: Type.Optional(Amount),
    reason: Type.Optional(Type.Enum(['requested_by_customer', 'duplicate', 'fraudulent'])),
    metadata: Type.Optional(Metadata),
  },
  { ...closed, $id: 'RefundPayment' },
)
export type RefundBody = Static<typeof RefundBody>

const Decline = Type.Object({
  code: Type.String(),
  decline_code: orNull(Type.String()),
  advice: orNull(Type.String()),
  message: Type.String(),
})

export const Payment = Type.Object(
  {
    id: PaymentId,
    object: Type.Literal('payment'),
    live: Type.Boolean(),
    status: Type.Enum([...STATUSES]),
    amount: Type.Integer(),
    currency: Type.String(),
    amount_capturable: Type.Integer(),
    amount_captured: Type.Integer(),
    amount_refunded: Type.Integer(),
    capture_method: Type.Enum(['automatic', 'manual']),
    capture_before: orNull(Type.String()),
    payment_method: Type.String(),
    payer: orNull(Type.String()),
    reference: orNull(Type.String()),
    unique_reference: orNull(Type.String()),
    metadata: Type.Record(Type.String(), Type.String()),
    decline: orNull(Decline),
    warnings: Type.Array(Type.Object({ code: Type.Literal('duplicate_intent'), payment: PaymentId })),
    attempts: Type.Array(
      Type.Object({
        number: Type.Integer(),
        gateway: Type.String(),
        gateway_id: orNull(Type.String()),
        status: Type.Enum(['processing', 'authorized', 'captured', 'declined']),
        decline: orNull(Decline),
      }),
    ),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Payment' },
)

export const Refund = Type.Object(
  {
    id: RefundId,
    object: Type.Literal('refund'),
    payment: PaymentId,
    status: Type.Enum(['processing', 'succeeded', 'failed']),
    amount: Type.Integer(),
    currency: Type.String(),
    reason: orNull(Type.String()),
    metadata: Type.Record(Type.String(), Type.String()),
    decline: orNull(Decline),
    created_at: Type.String(),
  },
  { $id: 'Refund' },
)
