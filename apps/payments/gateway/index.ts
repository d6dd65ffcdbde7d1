/** What the service knows of a payment processor. Each processor is one file behind this door. */
import type { CallContext, Found } from 'onlyonce'

export type Mode = 'test' | 'live'

/** An amount in minor units of an ISO 4217 currency, in capital letters. */
export interface Money {
  readonly amount: number
  readonly currency: string
}

export interface AuthorizeOrder extends Money {
  /** Whose it is, `acct_…:test`: told to the processor, so that what its webhooks say can be told to the right one. */
  readonly account: string
  /** The payment that it is for: told to the processor, so that both sides' books can be compared. */
  readonly payment: string
  /** A token of the processor's. Card numbers never come here. */
  readonly payment_method: string
  /** Whether the money is taken at once, or only held. */
  readonly capture: 'automatic' | 'manual'
  readonly reference: string | null
}

/** What the processor says when it does not want to. A decline is a result, not an error. */
export interface Decline {
  readonly status: 'declined'
  /** Null where it made no object for what it declined. */
  readonly gateway_id: string | null
  /** Such as `card_declined`. */
  readonly code: string
  /** The issuer's reason, such as `insufficient_funds`. */
  readonly decline_code: string | null
  /** What to do next: `try_again_later`, `do_not_try_again` or `confirm_card_data`. */
  readonly advice: string | null
  readonly message: string
}

export interface Authorized extends Money {
  readonly status: 'authorized' | 'captured'
  readonly gateway_id: string
  /** Until when the money is held; ISO 8601. Null once it is taken. */
  readonly capture_before: string | null
}

export interface CaptureOrder extends Money {
  readonly gateway_id: string
  /** Of the payment: what one capture is called on our side. */
  readonly capture: string
  /** Lets go of the rest. */
  readonly final: boolean
}
export interface Captured extends Money {
  readonly status: 'captured'
  readonly gateway_id: string
}

export interface VoidOrder {
  readonly gateway_id: string
  readonly reason: 'requested_by_customer' | 'abandoned' | 'duplicate' | 'fraudulent' | null
}
export interface Voided {
  readonly status: 'voided'
  readonly gateway_id: string
}

export interface RefundOrder extends Money {
  /** As for an authorization. */
  readonly account: string
  /** What the payment is called at the processor. */
  readonly gateway_id: string
  readonly refund: string
  readonly reason: 'requested_by_customer' | 'duplicate' | 'fraudulent' | null
}
export interface Refunded extends Money {
  readonly status: 'refunded'
  /** Of the refund. */
  readonly gateway_id: string
}

/** What the processor has under an id that a person names, or under the key of a call of ours. */
export interface Charge extends Money {
  readonly gateway_id: string
  /** Of the call that made it; null for what no call of ours has made. */
  readonly key: string | null
  /** Ours, as they were told to the processor; null for what we have not made. */
  readonly account: string | null
  readonly reference: string | null
  /** Of a refund: what its payment is called there. Null for a payment. */
  readonly of: string | null
  /** `open`: it is not decided there. */
  readonly status: 'held' | 'moved' | 'open' | 'failed'
  /** Of a payment: what was taken so far, what can still be taken, and what was given back since. Of a refund: what was given back. */
  readonly taken: number
  readonly held: number
  readonly given_back: number
  /** Of a payment: captures of ours among what was taken, by the keys of their calls. */
  readonly captures: readonly { readonly key: string; readonly amount: number }[]
  /** Until when the money is held; ISO 8601. Null where none is held. */
  readonly capture_before: string | null
}

/** Money that moved at the processor, as its own books tell it. */
export interface Movement extends Money {
  readonly kind: 'payment' | 'refund'
  readonly gateway_id: string
  /** Ours, as they were told to the processor; null for what we have not made. */
  readonly account: string | null
  readonly reference: string | null
  /** Taken or given back so far; zero for what is only held, was declined or let go. */
  readonly moved: number
  readonly at: string
}

/**
 * A processor. Calls throw `notExecuted()` where it is proved that nothing happened, `callRefused()` where the other side
 * refuses for good what must not be refused, and anything else leaves the outcome in doubt. What it answers is compared with
 * what was asked: another amount or currency is in doubt too.
 */
export interface Gateway {
  readonly name: string
  readonly mode: Mode
  /** How long the other side remembers idempotency keys. */
  readonly keyLifetimeMs: number
  /** How long its lookups may miss what was done. */
  readonly visibleWithinMs: number
  readonly timeoutMs: number
  /** The longest time that it holds money. */
  readonly holdMaxMs: number
  /** What its ids look like, from the first character to the last. */
  readonly ids: Readonly<Record<Movement['kind'], RegExp>>
  authorize(order: AuthorizeOrder, context: CallContext): Promise<Authorized | Decline>
  capture(order: CaptureOrder, context: CallContext): Promise<Captured | Decline>
  void(order: VoidOrder, context: CallContext): Promise<Voided | Decline>
  refund(order: RefundOrder, context: CallContext): Promise<Refunded | Decline>
  findAuthorization(order: AuthorizeOrder, context: CallContext): Promise<Found<Authorized | Decline>>
  findCapture(order: CaptureOrder, context: CallContext): Promise<Found<Captured | Decline>>
  findVoid(order: VoidOrder, context: CallContext): Promise<Found<Voided | Decline>>
  findRefund(order: RefundOrder, context: CallContext): Promise<Found<Refunded | Decline>>
  /** Null where the processor says that there is none. Throws where it does not say. */
  lookUp(kind: Movement['kind'], gatewayId: string, signal: AbortSignal): Promise<Charge | null>
  /**
   * What calls of ours with this key have made; of refunds those of this payment, by its name there. Throws where the processor does
   * not say. Like `find…` it may miss what is younger than `visibleWithinMs`.
   */
  lookUpByKey(
    kind: Movement['kind'],
    call: { readonly key: string; readonly of: string | null },
    signal: AbortSignal,
  ): Promise<readonly Charge[]>
  /** All movements that were made in this time, oldest first or not; for reconciliation. */
  movements(range: {
    readonly from: Date
    readonly to: Date
    readonly signal?: AbortSignal
  }): AsyncIterable<Movement>
}
