/** What the gateway and those who talk to it agree on. */

/** A charge or a refund, as it is answered, looked up and announced. A decline is a result like any other. */
export type Result = ChargeResult | RefundResult

export interface ChargeResult {
  readonly object: 'charge'
  readonly id: string
  readonly status: 'succeeded' | 'declined'
  readonly amount: number
  readonly currency: string
  readonly reference: string
}

export interface RefundResult {
  readonly object: 'refund'
  readonly id: string
  readonly status: 'succeeded' | 'declined'
  readonly amount: number
  readonly currency: string
  /** The id of the charge that it undoes. */
  readonly charge: string
}

/** One line of the journal: what was done, for whom, and when by the gateway's own clock. */
export interface Entry {
  readonly at: number
  readonly kind: 'charge' | 'refund'
  readonly key: string
  readonly id: string
  readonly status: 'succeeded' | 'declined'
  readonly amount: number
  readonly currency: string
  /** The caller's reference, or the charge that a refund undoes. */
  readonly reference: string
  readonly token: string | null
  /** From when on a lookup finds it. */
  readonly visible_at: number
}

export interface ChargeRequest {
  readonly amount: number
  readonly currency?: string
  readonly reference: string
  /** `tok_declined` is declined; so is every amount that ends in 02. */
  readonly token?: string
}

export interface RefundRequest {
  readonly charge: string
}

export type Lookup =
  | { readonly status: 'found'; readonly result: Result }
  | { readonly status: 'not_found' }
  | { readonly status: 'pending' }

/** Requests that have an effect, requests that have none, and what the gateway sends by itself. */
export type Target = 'charge' | 'refund' | 'lookup' | 'webhook'

/** Moments of a request at which the process can be killed. */
export type KillPoint = 'before_journal' | 'within_journal' | 'after_journal'

/**
 * A way to misbehave. Each belongs to one stage of a request, and a request may meet one of every stage: an answer that is
 * lost and a lookup that lags are two faults.
 */
export type Fault =
  /** The socket is destroyed, before anything was done or after it. */
  | { readonly fault: 'lose'; readonly at: 'before' | 'after' }
  /** The request waits, before anything is done or after it: for a time by the gateway's clock, or until it is released. */
  | { readonly fault: 'delay'; readonly at: 'before' | 'after'; readonly ms: number }
  | { readonly fault: 'hold'; readonly at: 'before' | 'after' }
  /** Answers 500, and has done nothing, or everything. */
  | { readonly fault: 'error'; readonly at: 'before' | 'after' }
  /** 429: nothing was done. */
  | { readonly fault: 'busy' }
  /** Half of the answer's JSON, in an answer that is whole. */
  | { readonly fault: 'truncate' }
  /** What is done is not found by lookups for a while. */
  | { readonly fault: 'lag'; readonly ms: number }
  /** A lookup says that it does not know yet. */
  | { readonly fault: 'pending' }
  /** SIGKILL by its own hand. */
  | { readonly fault: 'kill'; readonly at: KillPoint }
  /** A webhook is sent twice. */
  | { readonly fault: 'double' }

/** Which requests meet a fault. Without a word about it: the next charge or refund, whatever its key. */
export interface Scope {
  readonly on?: Target
  readonly key?: string
  /** How many requests meet it. Default: one; with `rate`, all that chance picks. */
  readonly times?: number
  /** The share of requests that meet it, from 0 to 1. */
  readonly rate?: number
}

/** What `POST /control` takes. */
export type Control =
  | (Fault & Scope)
  /** Lets held requests go on: those of one key, or all. */
  | { readonly release: string | 'all' }
  | { readonly advance_ms: number }
  /** Forgets all faults. What is held stays held. */
  | { readonly behave: true }

/** What `GET /control` tells: facts that a test can wait for. */
export interface State {
  readonly now: number
  /** Keys of the requests that are held. */
  readonly held: readonly string[]
  /** Requests that have arrived, by what they ask for. */
  readonly received: Readonly<Record<'charge' | 'refund' | 'lookup', number>>
  readonly webhooks: { readonly delivered: number; readonly failed: number; readonly lost: number }
}

export interface GatewayOptions {
  /** Whether a key that was seen has no second effect. Default: true. */
  readonly dedupe?: boolean
  /** How long a key is remembered, by the gateway's clock. Default: for ever. */
  readonly keyLifetimeMs?: number
  /** Where each charge and refund is announced. */
  readonly webhookUrl?: string
}
