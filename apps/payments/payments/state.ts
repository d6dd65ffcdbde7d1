/**
 * The life of a payment. The database has the same lines in a trigger.
 *
 *   processing ──▶ requires_capture ──▶ partially_captured ──▶ succeeded
 *     │  │  │         │    │    └──────────────────────────────▲
 *     │  │  │         │    └─▶ expired                         │
 *     │  │  │         └──────▶ canceled                        │
 *     │  │  └──────────────────────────────────────────────────┘
 *     │  └─▶ unknown ──▶ requires_capture, succeeded, failed
 *     └────▶ failed
 */
export const STATUSES = [
  'processing',
  'unknown',
  'requires_capture',
  'partially_captured',
  'succeeded',
  'failed',
  'canceled',
  'expired',
] as const

export type Status = (typeof STATUSES)[number]

export const MOVES: Readonly<Record<Status, readonly Status[]>> = {
  processing: ['unknown', 'requires_capture', 'succeeded', 'failed'],
  unknown: ['requires_capture', 'succeeded', 'failed'],
  requires_capture: ['partially_captured', 'succeeded', 'canceled', 'expired'],
  partially_captured: ['succeeded'],
  succeeded: [],
  failed: [],
  canceled: [],
  expired: [],
}

/** Where a payment stands whose rest is let go of: what was captured of it stays. */
export function afterLettingGo(captured: number, why: 'canceled' | 'expired'): Status {
  return captured > 0 ? 'succeeded' : why
}

/** Where a payment stands after a capture, given what is captured by then. */
export function afterCapture(captured: number, amount: number, final: boolean): Status {
  return final || captured === amount ? 'succeeded' : 'partially_captured'
}
