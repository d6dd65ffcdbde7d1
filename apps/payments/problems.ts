import { type OperationReply, reply } from 'onlyonce'
import type { Executed } from 'onlyonce/errors'

/**
 * Every refusal of the service's own: what clients match on. Codes are stable for ever. What the library refuses (keys,
 * duplicates, an outcome that is not known) has the codes of docs/reference/errors.md.
 */
export const PROBLEMS = {
  invalid_request: { status: 400, message: 'The request is not what the schema asks for.' },
  card_number: {
    status: 400,
    message: 'The request holds a card number where none belongs. Take it out; the key is still free.',
  },
  unauthorized: { status: 401, message: 'Send an API key that is valid: Authorization: Bearer <key>.' },
  mode_unavailable: { status: 403, message: 'No processor is set up for the mode of this API key.' },
  not_found: { status: 404, message: 'There is no such object in this account.' },
  method_not_allowed: {
    status: 405,
    message: 'This method cannot be used here. See Allow for those that can.',
  },
  request_timeout: { status: 408, message: 'The request did not come whole in time. Send it again.' },
  body_too_large: { status: 413, message: 'The body is larger than any request needs.' },
  media_type_unsupported: { status: 415, message: 'Send JSON in UTF-8 as application/json.' },
  expectation_failed: { status: 417, message: 'Of expectations only 100-continue is met.' },
  headers_too_large: { status: 431, message: 'The headers are larger than any request needs.' },
  duplicate_intent: {
    status: 409,
    message:
      'The same payment exists. Look at that one; this key may be sent again if nothing becomes of it.',
  },
  decision_too_early: {
    status: 409,
    message: 'The processor may not show yet what the request has done. Decide after decidable_at.',
  },
  request_given_up: {
    status: 422,
    message: 'The request was not executed, and others needed what it held. Use a new key for another try.',
  },
  amount_too_large: { status: 422, message: 'The amount is more than is left.' },
  payment_state: { status: 422, message: 'The state of the payment does not allow this.' },
  currency_mismatch: { status: 422, message: 'The currency is not that of the payment.' },
  balance_insufficient: { status: 422, message: 'The balance does not cover the transfer.' },
  destination_unknown: { status: 422, message: 'The destination of the transfer cannot receive it.' },
  payment_declined: {
    status: 402,
    message: 'The payment was declined. Do not send it again with this method.',
  },
  capture_failed: { status: 422, message: 'The processor did not capture it. Nothing was taken.' },
  cancel_failed: { status: 422, message: 'The processor did not let go of it.' },
  refund_failed: { status: 422, message: 'The processor did not refund it. Nothing was given back.' },
  rate_limited: { status: 429, message: 'Too many requests. Send the same key again after Retry-After.' },
  velocity_limited: {
    status: 429,
    message: 'Too many payments in a short time. Try again after Retry-After.',
  },
  quota_exceeded: {
    status: 429,
    message:
      'The account has begun as many writes as it may in a day. Send the same key again after Retry-After.',
  },
  limits_unavailable: {
    status: 503,
    message:
      'The limits of this card cannot be counted now. Nothing was started; send the same key again after Retry-After.',
  },
  overloaded: {
    status: 503,
    message: 'There is too much to do. This request started nothing; send the same key again.',
  },
  unavailable: { status: 503, message: 'The service cannot answer now. Send the same key again.' },
  internal: {
    status: 500,
    message: 'Something went wrong here. Send the same key again, or tell us the request id.',
  },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly message: string }>>

export type ProblemCode = keyof typeof PROBLEMS

/**
 * What a refusal says about the key, as the library's problems do: those at the door started nothing, and know nothing of an
 * earlier request with the key. What is not here is the result of a request, and has no such member.
 */
const EXECUTED: Partial<Readonly<Record<ProblemCode, Executed>>> = {
  invalid_request: 'not_by_this_request',
  card_number: 'not_by_this_request',
  mode_unavailable: 'not_by_this_request',
  not_found: 'not_by_this_request',
  unauthorized: 'not_by_this_request',
  method_not_allowed: 'not_by_this_request',
  request_timeout: 'not_by_this_request',
  body_too_large: 'not_by_this_request',
  media_type_unsupported: 'not_by_this_request',
  expectation_failed: 'not_by_this_request',
  headers_too_large: 'not_by_this_request',
  duplicate_intent: 'not_by_this_request',
  decision_too_early: 'not_by_this_request',
  // The stored outcome of the key: it is final that nothing happened.
  request_given_up: 'no',
  rate_limited: 'not_by_this_request',
  velocity_limited: 'not_by_this_request',
  quota_exceeded: 'not_by_this_request',
  overloaded: 'not_by_this_request',
  limits_unavailable: 'not_by_this_request',
  unavailable: 'unknown',
  internal: 'unknown',
}

export interface ProblemDetails {
  readonly detail?: string
  /** The member of the body or the parameter that is wrong, such as `amount` or `metadata.order`. */
  readonly field?: string
  /** Members of the problem beside the usual ones. */
  readonly more?: Readonly<Record<string, unknown>>
  /** Of the answer, where the refusal is thrown. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A refusal that is thrown: nothing was started. Routes answer it as a problem. */
export class Refused extends Error {
  readonly code: ProblemCode
  readonly details: ProblemDetails

  constructor(code: ProblemCode, details: ProblemDetails = {}) {
    super(details.detail ?? PROBLEMS[code].message)
    this.name = 'Refused'
    this.code = code
    this.details = details
  }
}

/**
 * A type of problem and its title, which is the code as words, as in problems of the library: a code that both use has one title,
 * whoever answers.
 */
export function typeOf(code: string): { readonly type: string; readonly title: string } {
  const words = code.replaceAll('_', ' ')
  return {
    type: `https://onlyonce.dev/problems/${code}`,
    title: words.charAt(0).toUpperCase() + words.slice(1),
  }
}

/** The body of a problem, as in RFC 9457. */
export function problemBody(code: ProblemCode, { detail, field, more }: ProblemDetails = {}) {
  const { status, message } = PROBLEMS[code]
  const executed = EXECUTED[code]
  return {
    ...typeOf(code),
    status,
    detail: detail ?? message,
    code,
    ...(field !== undefined && { field }),
    retryable: status === 408 || status === 429 || status >= 500,
    ...(executed !== undefined && { executed }),
    ...more,
  }
}

export const PROBLEM_TYPE = 'application/problem+json'

/** A refusal that is the result of an operation: it is stored, and replayed. */
export function problemReply(code: ProblemCode, details?: ProblemDetails): OperationReply<unknown> {
  return reply(PROBLEMS[code].status, problemBody(code, details), { 'content-type': PROBLEM_TYPE })
}
