import type { Decline } from '../gateway/index.ts'
import type { Status } from './state.ts'

export type Metadata = Readonly<Record<string, string>>

/** A payment as the database gives it. Times are ISO 8601 in UTC. */
export interface PaymentRow {
  readonly account: string
  readonly id: string
  readonly status: Status
  readonly amount: number
  readonly currency: string
  readonly capture_method: 'automatic' | 'manual'
  readonly payment_method: string
  readonly payer: string | null
  readonly reference: string | null
  readonly unique_reference: string | null
  readonly metadata: Metadata
  readonly idempotency_key: string
  readonly gateway: string
  readonly gateway_id: string | null
  readonly captured: number
  readonly capturing: number
  readonly refunded: number
  readonly refunding: number
  readonly held: number
  readonly closing: string | null
  readonly capture_before: string | null
  readonly decline: DeclineView | null
  readonly duplicate_of: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly attempts: readonly AttemptRow[]
}

export interface AttemptRow {
  readonly number: number
  readonly gateway: string
  readonly gateway_id: string | null
  readonly status: 'processing' | 'authorized' | 'captured' | 'declined'
  readonly decline: DeclineView | null
}

export interface RefundRow {
  readonly id: string
  readonly payment: string
  readonly amount: number
  readonly currency: string
  readonly reason: string | null
  readonly metadata: Metadata
  readonly status: 'processing' | 'succeeded' | 'failed'
  readonly decline: DeclineView | null
  readonly created_at: string
}

/** What a client is told of a decline. */
export interface DeclineView {
  readonly code: string
  readonly decline_code: string | null
  readonly advice: string | null
  readonly message: string
}

export function viewDecline({ code, decline_code: declineCode, advice, message }: Decline): DeclineView {
  return { code, decline_code: declineCode, advice, message }
}

/** A payment as clients see it. */
export function presentPayment(row: PaymentRow) {
  const open = row.status === 'requires_capture' || row.status === 'partially_captured'
  return {
    id: row.id,
    object: 'payment',
    live: row.account.endsWith(':live'),
    status: row.status,
    amount: row.amount,
    currency: row.currency,
    amount_capturable: open ? row.amount - row.captured - row.capturing : 0,
    amount_captured: row.captured,
    amount_refunded: row.refunded,
    capture_method: row.capture_method,
    capture_before: open ? row.capture_before : null,
    payment_method: row.payment_method,
    payer: row.payer,
    reference: row.reference,
    unique_reference: row.unique_reference,
    metadata: row.metadata,
    decline: row.decline,
    warnings:
      row.duplicate_of === null ? [] : [{ code: 'duplicate_intent', payment: row.duplicate_of } as const],
    attempts: row.attempts.map(({ number, gateway, gateway_id: gatewayId, status, decline }) => ({
      number,
      gateway,
      gateway_id: gatewayId,
      status,
      decline,
    })),
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

/**
 * What an event tells of it: all but the account's own notes. Those are kept with the payment alone, and not once more with each event and
 * each message.
 */
export function withoutMetadata<T extends { readonly metadata: unknown }>({ metadata, ...rest }: T) {
  return rest
}

export type Payment = ReturnType<typeof presentPayment>

/** A refund as clients see it. */
export function presentRefund(row: RefundRow) {
  return {
    id: row.id,
    object: 'refund',
    payment: row.payment,
    status: row.status,
    amount: row.amount,
    currency: row.currency,
    reason: row.reason,
    metadata: row.metadata,
    decline: row.decline,
    created_at: row.created_at,
  }
}
