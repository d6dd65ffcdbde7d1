import type { ApiName, Convention } from './conventions.ts'
import type { PendingAction } from './keys/pending.ts'
import type { KeyStatus } from './status.ts'

/** Whether an answer says that the action of its key took effect. An answer speaks for the key, or for its own request alone. */
export type Evidence = 'yes' | 'no' | 'not_by_this_request' | 'unknown'

/** Why the client waits before it sends the same request again. */
export type WhyWaiting = 'in_progress' | 'no_answer' | 'refused_for_now' | 'offline' | 'circuit_open'

/** One attempt of a call, after it has ended. */
export interface Attempt {
  /** 1 is the first. */
  readonly number: number
  readonly key: string
  /** Of the answer. Null: there was none, or it was cut off before its status. */
  readonly status: number | null
  /** The code that the server gave, or what became of the attempt: `no_answer`, `timeout`, `offline`, `aborted`, `not_sent`. */
  readonly code: string | null
  /** What the attempt proves. */
  readonly executed: Evidence
  /** Whether the server sent a stored answer again. */
  readonly replayed: boolean
  readonly ms: number
}

/** Hooks for a user interface. What a hook throws is reported, and changes nothing about the call. */
export interface Hooks {
  /** After each attempt. */
  readonly onAttempt?: (attempt: Attempt) => unknown
  /** Before each wait. */
  readonly onWaiting?: (ms: number, why: WhyWaiting) => unknown
}

/** How long and how often one call is tried. */
export interface Patience {
  /**
   * How often a request is sent again after trouble. Waiting for an attempt that is in progress does not count: the deadline bounds it.
   *
   * @default 2
   */
  readonly maxRetries?: number
  /**
   * After how long the call gives up, with all its attempts and waits.
   *
   * @default 120_000
   */
  readonly deadlineMs?: number
  /**
   * How long one attempt waits for its whole answer.
   *
   * @default 30_000
   */
  readonly attemptTimeoutMs?: number
}

/** The settings of a client. All of them may be left out. */
export interface ClientOptions extends Hooks, Patience {
  /**
   * What relative addresses are relative to.
   *
   * @default the page's address; in Node.js there is none
   */
  readonly baseUrl?: string | URL
  /**
   * Whose conventions the server follows: the name of the header, how long a key may be, and which answers ask for a retry.
   *
   * @default 'onlyonce'
   */
  readonly api?: ApiName | Convention
  /**
   * Headers of every request, for example `Authorization`. A function is asked once for each call.
   *
   * @default none
   */
  readonly headers?: RequestInit['headers'] | (() => RequestInit['headers'] | Promise<RequestInit['headers']>)
  /**
   * The first wait. The next ones are twice as long each, and each is shortened at random by up to half, never below this.
   *
   * @default 500
   */
  readonly initialDelayMs?: number
  /**
   * The longest wait that the client chooses by itself. A `Retry-After` of the server may be longer.
   *
   * @default 5_000
   */
  readonly maxDelayMs?: number
  /**
   * A header that tells the server until when the request may begin, for a server with `deadlineHeader`. It is sent as milliseconds since
   * the epoch by this machine's clock. A browser sends it to another origin only if CORS allows it there.
   *
   * @default none
   */
  readonly deadlineHeader?: string
  /**
   * Retries that all calls of this client share, so that a server that comes back is not met by a storm: `burst` at once, `perSecond` more
   * with time, and `ratio` more with each call.
   *
   * @default { burst: 20, perSecond: 1, ratio: 0.2 }
   */
  readonly retryBudget?:
    | { readonly burst?: number; readonly perSecond?: number; readonly ratio?: number }
    | false
  /**
   * After so many `failures` in a row (no answer, or a status of 500 and more) at an origin, new calls to it fail at once for `openMs`, and
   * then one of them tries.
   *
   * @default { failures: 10, openMs: 5_000 }
   */
  readonly circuitBreaker?: { readonly failures?: number; readonly openMs?: number } | false
  /**
   * Where the outcome of a key is asked for. `{key}` is replaced.
   *
   * @default '/v1/idempotency-keys/{key}'
   */
  readonly statusUrl?: string | ((key: string) => string | URL)
  /**
   * Reads the answer of `statusUrl`, where it has another form than that of onlyonce.
   *
   * @default the form of onlyonce is read
   */
  readonly readStatus?: (response: Response, key: string) => KeyStatus | Promise<KeyStatus>
  /**
   * What sends a request.
   *
   * @default the global fetch
   */
  readonly fetch?: (input: string | Request, init: RequestInit) => Promise<Response>
}

/** What one call may say, beside everything that `fetch` takes. */
export interface CallOptions extends Hooks, Patience {
  /**
   * The key of this action. A function is asked once, before the first attempt, for example for a key that the server issues.
   *
   * @default that of the header, or a random UUID
   */
  readonly key?: string | (() => string | Promise<string>)
  /**
   * The action that this request sends, in place of a key: `pendingAction('checkout:cart-42', …)`. Its key is kept until the outcome is known, so
   * that a second click, a reload or another tab sends the same one.
   *
   * @default none
   */
  readonly action?: Pick<PendingAction, 'run'>
  /**
   * Whether the key may have been sent before this call. A refusal then proves nothing about the earlier request.
   *
   * @default true where `key` is a text, false where it is made for this call
   */
  readonly resumed?: boolean
}

export type IdempotentInit = RequestInit & CallOptions

/** What became of a call that got its answer. */
export interface Sent {
  readonly response: Response
  readonly key: string
  readonly attempts: readonly Attempt[]
  /** Whether the answer is that of an earlier attempt, sent again. */
  readonly replayed: boolean
  readonly ms: number
}

/** A `fetch` whose requests take effect once. */
export interface IdempotentFetch {
  /**
   * Sends a request until its answer is known, with one key and the same bytes. It resolves with a final answer of any status, as `fetch`
   * does. It rejects with `NotExecuted`, `Executed` or `OutcomeUnknown` where there is no final answer, and where a refusal says nothing about
   * an attempt before it. GET, HEAD and OPTIONS are sent as they are.
   *
   * @example
   * const response = await pay('/v1/payments', { method: 'POST', body: JSON.stringify(order) })
   * if (response.ok) showReceipt(await response.json())
   */
  (input: string | URL | Request, init?: IdempotentInit): Promise<Response>
  /**
   * The same, with what happened on the way.
   *
   * @example
   * const { response, key, attempts, replayed, ms } = await pay.send('/v1/payments', { method: 'POST', body })
   */
  send(input: string | URL | Request, init?: IdempotentInit): Promise<Sent>
  /**
   * Asks the server what became of a key. "No such key" proves nothing: a request with it may be on its way.
   *
   * @example
   * if (error instanceof OutcomeUnknown) console.log(await pay.status(error.key))
   */
  status(key: string): Promise<KeyStatus>
}
