/**
 * What each route answers when it refuses: the codes by route. The OpenAPI document is made of this, and tests compare every answer
 * that they get with the document.
 */
import type { ErrorCode } from 'onlyonce'
import { ERRORS } from 'onlyonce/errors'
import { PROBLEMS, type ProblemCode } from '../problems.ts'

/** A code of the service's own, or of the library. */
export type Code = ProblemCode | ErrorCode

interface Entry {
  readonly status: number
  /** What happened, and what a client does next. */
  readonly message: string
}

/** Codes of both tables are told with the service's words. */
export function entryOf(code: Code): Entry {
  return code in PROBLEMS ? PROBLEMS[code as ProblemCode] : ERRORS[code as ErrorCode]
}

const ofLibrary = (prefix: string) =>
  (Object.keys(ERRORS) as ErrorCode[]).filter((code) => code.startsWith(prefix) && ERRORS[code].status < 500)

/** What no key may be. */
const KEY_FORM: readonly Code[] = ofLibrary('key_').filter((code) => ERRORS[code].status === 400)

/** Of any request, before its route has a say. */
const ANY: readonly Code[] = [
  'invalid_request',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
  'internal',
]
/** Where a credential is asked for. */
const CREDENTIAL: readonly Code[] = ['unauthorized', 'rate_limited']
const DATABASE: readonly Code[] = [
  'overloaded',
  'unavailable',
  'store_unavailable',
  'pool_exhausted',
  'closed',
]
/** Where a body is read. */
const BODY: readonly Code[] = [
  'body_too_large',
  'media_type_unsupported',
  'card_number',
  ...ofLibrary('json_'),
]
/** Where an Idempotency-Key is asked for. */
const KEY: readonly Code[] = [
  ...KEY_FORM,
  'key_reused',
  'key_just_expired',
  'key_signer_unknown',
  'clocks_disagree',
  'deadline_invalid',
  'deadline_exceeded',
  'in_progress',
  'outcome_pending',
  'parked',
  'reply_not_kept',
  'overloaded',
  'quota_exceeded',
  'not_executed',
  'not_applied',
  'unfinished',
  'lease_lost',
  'outcome_unknown',
  'serialization_failed',
  'transaction_idle',
  'fingerprint_key_unknown',
  'seal_key_unknown',
  'operation_unknown',
]
/** Of a payment that exists. */
const OF_PAYMENT: readonly Code[] = ['not_found', 'mode_unavailable', 'payment_state', 'request_given_up']
const ENDPOINT: readonly Code[] = ['webhook_endpoint_unknown']
const ENDPOINT_GIVEN: readonly Code[] = [
  'webhook_url_refused',
  'webhook_url_taken',
  'webhook_endpoint_invalid',
]

/** What is beside what holds for all routes of a kind. */
const OWN: Readonly<Record<string, readonly Code[]>> = {
  'POST /v1/payments': [
    'payment_declined',
    'mode_unavailable',
    'duplicate_intent',
    'request_given_up',
    'velocity_limited',
    'limits_unavailable',
  ],
  'GET /v1/payments/:payment': ['not_found'],
  'POST /v1/payments/:payment/capture': [...OF_PAYMENT, 'amount_too_large', 'capture_failed'],
  'POST /v1/payments/:payment/cancel': [...OF_PAYMENT, 'cancel_failed'],
  'POST /v1/payments/:payment/refunds': [...OF_PAYMENT, 'amount_too_large', 'refund_failed'],
  'GET /v1/payments/:payment/refunds': ['not_found'],
  'GET /v1/payments/:payment/refunds/:refund': ['not_found'],
  'POST /v1/transfers': ['balance_insufficient', 'destination_unknown', 'handler_failed'],
  'GET /v1/transfers/:transfer': ['not_found'],
  'GET /v1/idempotency-keys/:key': KEY_FORM,
  'POST /v1/webhook-endpoints': [...ENDPOINT_GIVEN, 'webhook_endpoints_too_many', 'handler_failed'],
  'GET /v1/webhook-endpoints/:id': ENDPOINT,
  'PATCH /v1/webhook-endpoints/:id': [...ENDPOINT, ...ENDPOINT_GIVEN],
  'DELETE /v1/webhook-endpoints/:id': ENDPOINT,
  'POST /v1/webhook-endpoints/:id/rotate-secret': ENDPOINT,
  'GET /v1/webhook-endpoints/:id/deliveries': ENDPOINT,
  'POST /v1/webhook-endpoints/:id/replay': [
    ...ENDPOINT,
    'webhook_endpoint_disabled',
    'webhook_message_unknown',
  ],
  'GET /v1/events/:id': ['webhook_message_unknown'],
  'POST /webhooks/stripe': [
    'body_too_large',
    'media_type_unsupported',
    'unavailable',
    'store_unavailable',
    'rate_limited',
    'webhook_unsigned',
    'webhook_timestamp_invalid',
    'webhook_signature_invalid',
    'webhook_too_old',
    'webhook_too_new',
    'webhook_payload_invalid',
  ],
  'GET /readyz': ['unavailable'],
  'PATCH /ops/accounts/:account_id': ['not_found'],
  'POST /ops/accounts/:account_id/api-keys': ['not_found'],
  'GET /ops/accounts/:account_id/api-keys': ['not_found'],
  'POST /ops/accounts/:account_id/api-keys/:mode/:key_id/revoke': ['not_found'],
  'POST /ops/accounts/:account_id/payers/forget': ['not_found'],
  'GET /ops/record': KEY_FORM,
  'POST /ops/record/decisions': ['not_resolvable', 'record_changed', 'decision_too_early', ...KEY_FORM],
  'POST /ops/record/evidence': ['not_resolvable', 'record_changed', 'decision_too_early', ...KEY_FORM],
}

export interface RouteKind {
  readonly method: string
  readonly url: string
  /** A write that needs no key. */
  readonly keyless: boolean
}

/** Whether a route asks for an Idempotency-Key. */
export function isKeyed({ method, url, keyless }: RouteKind): boolean {
  return url.startsWith('/v1/') && method !== 'GET' && !keyless
}

/** The codes that a route can answer, by status. */
export function answersOf(route: RouteKind): ReadonlyMap<number, readonly Code[]> {
  const { method, url } = route
  const guarded = /^\/(?:v1|ops)\//.test(url) || url === '/metrics'
  const codes = new Set<Code>([
    ...ANY,
    ...(guarded ? CREDENTIAL : []),
    ...(guarded && url !== '/metrics' ? DATABASE : []),
    // Also where none is asked for: what was sent is read before it is refused.
    ...(method !== 'GET' && url !== '/webhooks/stripe' ? BODY : []),
    ...(isKeyed(route) ? KEY : []),
    ...(OWN[`${method} ${url}`] ?? []),
  ])
  const byStatus = new Map<number, Code[]>()
  for (const code of codes) {
    const { status } = entryOf(code)
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return byStatus
}
