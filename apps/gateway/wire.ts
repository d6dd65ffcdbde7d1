/** What the gateway and those who command it agree on. Payments themselves are in Stripe's protocol. */

/** What a line of the journal is about: money that is held, taken, let go or given back, or that nobody got. */
export type MovementKind = 'authorization' | 'capture' | 'void' | 'refund' | 'decline'

/** One line of the journal: what was done, for whom, and when by the gateway's own clock. */
export interface JournalEntry {
  readonly kind: MovementKind
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The idempotency key; null for who sent none, and for an authorization that ran out by itself. */
  readonly key: string | null
  readonly payment_intent: string
  /** Of a refund. */
  readonly refund?: string
  /** What was held, taken, let go, given back or declined, in minor units. */
  readonly amount: number
  /** In small letters, as in Stripe's objects. */
  readonly currency: string
  /** What the request brought; of a void, that of the payment intent. */
  readonly metadata: Readonly<Record<string, string>>
  /**
   * `automatic` on a capture that is the whole payment: held and taken in one step, in one line, so that no crash comes
   * between the two.
   */
  readonly capture_method?: 'automatic' | 'manual'
  /** Whether a capture lets go of the rest. */
  readonly final?: boolean
  readonly payment_method?: string
  readonly description?: string | null
  readonly reason?: string | null
  /** What ids are made of: also after a restart they are the same. */
  readonly nonce: string
  /** The name of the request; null where nobody asked. */
  readonly request: string | null
  readonly fingerprint: string
  /** The answer names the whole charge, not only its id. */
  readonly expanded?: true
  /** From when on lookups see it, where they were told to lag. */
  readonly visible_at?: number
  /** What is remembered under the key is an error 500, though all was done. */
  readonly answered_error?: true
  readonly webhooks?: WebhookFaults
}

/** An answer that is remembered under its key, though nothing was moved. */
export interface RefusalEntry {
  readonly kind: 'refusal'
  readonly at: number
  readonly key: string
  readonly request: string
  readonly fingerprint: string
  readonly status: number
  readonly body: string
}

export type JournalLine = JournalEntry | RefusalEntry

/** What becomes of the webhooks of a movement. */
export interface WebhookFaults {
  readonly lost?: true
  readonly doubled?: true
  readonly reordered?: true
  readonly late_ms?: number
}

/** What a request wants; faults can be meant for one kind. */
export const TARGETS = ['create', 'capture', 'cancel', 'refund', 'lookup'] as const
export type Target = (typeof TARGETS)[number]

/** Every way to misbehave; README.md says what each does. */
export const FAULTS = [
  'lose_before',
  'reset_before',
  'error_before',
  'busy',
  'delay_before',
  'hold_before',
  'error_instead',
  'kill_before_journal',
  'kill_within_journal',
  'kill_after_journal',
  'error_after',
  'lag',
  'delay_after',
  'hold_after',
  'lose_after',
  'reset_after',
  'truncate',
  'cut',
  'html',
  'html_ok',
  'wrong_amount',
  'wrong_currency',
  'webhook_lost',
  'webhook_doubled',
  'webhook_reordered',
  'webhook_late',
] as const
export type FaultName = (typeof FAULTS)[number]

/** A fault, and which requests meet it. Without a word about it: the next request that moves money, whatever its key. */
export interface FaultRule {
  readonly fault: FaultName
  /** How long, for `delay_before`, `delay_after`, `lag` and `webhook_late`; by the gateway's clock. */
  readonly ms?: number
  /** Only requests of this kind. Default: all but lookups. */
  readonly on?: Target
  /** Only requests with this idempotency key. */
  readonly key?: string
  /** Only requests that bring this metadata. */
  readonly metadata?: { readonly name: string; readonly value: string }
  /** How many requests meet it. Default: one; with `rate`, all that chance picks. */
  readonly times?: number
  /** The share of requests that meet it, from 0 to 1. */
  readonly rate?: number
}

/** A request that arrived with an idempotency key, whatever became of it. */
export interface SeenRequest {
  readonly at: number
  readonly key: string
  readonly request: string
  readonly method: string
  readonly path: string
  /** Null while it runs, when it was lost, and for requests before a restart. */
  outcome: RequestOutcome | null
}

export type RequestOutcome = 'executed' | 'replayed' | 'in_use' | 'key_reused' | 'refused' | 'failed'

/** Facts that a test can wait for. */
export interface GatewayState {
  /** By the gateway's clock, in milliseconds since the epoch. */
  readonly now: number
  /** Chance is drawn from it: the same seed and the same order of requests give the same faults. */
  readonly seed: number
  /** Rules that may still strike. */
  readonly faults: readonly FaultRule[]
  /** Keys of the requests that are held. */
  readonly held: readonly string[]
  /** Requests that have arrived, by what they want. */
  readonly received: Readonly<Record<Target, number>>
  /** Lines of the journal, by what they are about. */
  readonly movements: Readonly<Record<MovementKind, number>>
  readonly webhooks: {
    readonly delivered: number
    /** Answers that were not 2xx, or none at all. */
    readonly failed: number
    readonly lost: number
    /** Not delivered yet, and not given up. */
    readonly pending: number
    readonly given_up: number
  }
}
