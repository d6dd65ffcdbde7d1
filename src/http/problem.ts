import { ERRORS, type ErrorCode, type Executed } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import type { ResolvedPolicy } from './policy.ts'
import type { HttpReply } from './reply.ts'
import type { BodyIssue } from './validate.ts'

/** What a problem tells: an error of the table, or a refusal under a code of the route's own. */
export interface Told {
  readonly code: string
  readonly status: number
  readonly retryable: boolean
  readonly executed: Executed
  readonly message: string
  /** After how long it is worth another try, where that is known. */
  readonly retryAfterMs?: number | null
}

/** What the boundary answers by itself: never stored, and told from the handler's own replies by its type. */
export function problemReply(
  given: Told,
  policy: Pick<ResolvedPolicy, 'errors' | 'problemBase'>,
  options: {
    readonly retryAfterMs?: number
    readonly status?: number
    readonly issues?: readonly BodyIssue[]
  } = {},
): HttpReply {
  const error = forClients(given)
  const status = options.status ?? error.status
  const retryAfterMs = options.retryAfterMs ?? given.retryAfterMs ?? usualWaitMs(status, error.retryable)
  const retry: [string, string][] =
    retryAfterMs === null ? [] : [['retry-after', `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}`]]
  const [type, body] =
    policy.errors === 'stripe'
      ? ['application/json', stripeBody(error)]
      : ['application/problem+json', problemBody(error, status, policy.problemBase, options.issues)]
  const headers: [string, string][] = [
    ['content-type', type],
    ['cache-control', 'no-store'],
    ...retry,
    ...(policy.errors === 'stripe'
      ? [['stripe-should-retry', `${error.retryable}`] satisfies [string, string]]
      : []),
  ]
  return {
    status: policy.errors === 'stripe' ? stripeStatus(error, status) : status,
    headers,
    body: Buffer.from(body),
  }
}

/** What passes by itself is worth another try soon: clients and proxies that know `Retry-After` need not guess when. */
function usualWaitMs(status: number, retryable: boolean): number | null {
  return status === 503 && retryable ? LIMITS.retryAfterMs : null
}

/** What is wrong with the service is no business of a client: the sentence of the table for clients, and no detail. */
function forClients(error: Told): Told {
  const { code, status, retryable, executed } = error
  const entry = Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode] : undefined
  if (entry === undefined || (code !== 'store_unavailable' && entry.developer === undefined)) return error
  return { code, status, retryable, executed, message: entry.message }
}

/** RFC 9457. `code`, `retryable` and `executed` are members of ours. */
function problemBody(
  { code, message, retryable, executed }: Told,
  status: number,
  base: string,
  issues: readonly BodyIssue[] | undefined,
): string {
  return JSON.stringify({
    type: `${base}${code}`,
    title: titleOf(code),
    status,
    detail: message,
    code,
    retryable,
    executed,
    ...(issues !== undefined && { issues }),
  })
}

/** The code as words: `key_reused` is "Key reused". */
function titleOf(code: string): string {
  const words = code.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function stripeBody({ code, message, status, executed }: Told): string {
  const idempotency = [
    'key_reused',
    'in_progress',
    'outcome_pending',
    'parked',
    'reply_not_kept',
    'key_erased',
  ].includes(code)
  const type = idempotency ? 'idempotency_error' : status >= 500 ? 'api_error' : 'invalid_request_error'
  return JSON.stringify({
    error: { type, code: STRIPE_CODES[code] ?? code, message, executed },
  })
}

/** What Stripe's clients know under another name. */
const STRIPE_CODES: Readonly<Record<string, string>> = {
  in_progress: 'idempotency_key_in_use',
  rate_limited: 'rate_limit',
}

/** A reused key is a bad request there. */
function stripeStatus({ code }: Told, status: number): number {
  return code === 'key_reused' ? 400 : status
}
