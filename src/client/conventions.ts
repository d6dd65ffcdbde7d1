/** How an API with idempotency keys names its headers, and how it tells that a request may be sent again. */
export interface Convention {
  /** The header of the key. */
  readonly keyHeader: string
  /** How long a key may be. */
  readonly keyLengthMax: number
  /** Whether the key stands between quotation marks, as a structured field. */
  readonly keyQuoted?: boolean
  /** The header that is `true` on a stored answer. */
  readonly replayedHeader?: string
  /** The header that says `true` or `false` about another attempt. It counts more than the status. */
  readonly retryHeader?: string
  /** Whether an answer without `retryHeader` is never a reason to send the request again. */
  readonly retryOnlyIfTold?: boolean
}

/**
 * The presets.
 *
 * - `onlyonce`: this library on the server.
 * - `draft`: draft-ietf-httpapi-idempotency-key-header. 409 is in progress, 422 a reused key.
 * - `stripe`: `Stripe-Should-Retry` decides; a reused key is a 400 of the type `idempotency_error`.
 * - `adyen`: only an answer with `transient-error: true` is a reason to try again.
 * - `paypal`: `PayPal-Request-Id`; 409 is in progress.
 */
export type ApiName = 'onlyonce' | 'draft' | 'stripe' | 'adyen' | 'paypal'

const USUAL = { keyHeader: 'Idempotency-Key', keyLengthMax: 255, replayedHeader: 'Idempotent-Replayed' }

export const CONVENTIONS: Readonly<Record<ApiName, Convention>> = {
  // A route of onlyonce may have a profile of Stripe's.
  onlyonce: { ...USUAL, retryHeader: 'Stripe-Should-Retry' },
  draft: { ...USUAL, keyQuoted: true },
  stripe: { ...USUAL, retryHeader: 'Stripe-Should-Retry' },
  adyen: { ...USUAL, keyLengthMax: 64, retryHeader: 'transient-error', retryOnlyIfTold: true },
  paypal: { ...USUAL, keyHeader: 'PayPal-Request-Id', keyLengthMax: 108 },
}
