import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, OnlyonceError } from 'onlyonce'
import { isNotNow } from '../database/away.ts'
import { GatewayIdTaken } from '../payments/taken.ts'
import {
  PROBLEM_TYPE,
  PROBLEMS,
  type ProblemCode,
  type ProblemDetails,
  problemBody,
  Refused,
  typeOf,
} from '../problems.ts'
import { describeInvalid } from './invalid.ts'

/** Answers with a problem. As bytes: to text Fastify adds a charset, which this type has not. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  code: ProblemCode,
  details?: ProblemDetails,
): FastifyReply {
  if (code === 'unavailable') reply.header('retry-after', '1')
  if (details?.headers !== undefined) reply.headers(details.headers)
  return send(request, reply, problemBody(code, details))
}

/** Whatever was thrown, told without a word of what it was, unless it was meant to be told. */
export function answerError(
  error: FastifyError | Error,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (error instanceof Refused) return sendRefusal(error, request, reply)
  if (error instanceof OnlyonceError) return answerLibrary(error, request, reply)
  if (error instanceof GatewayIdTaken) return answerTaken(error, request, reply)
  if ((error as FastifyError).validation !== undefined) {
    return sendProblem(request, reply, 'invalid_request', describeInvalid(error as FastifyError))
  }
  const code = codeOf(error) as ProblemCode
  if (PROBLEMS[code].status >= 500) request.log.error({ err: error }, 'a request failed')
  return sendProblem(request, reply, code)
}

/** The code that an error is told with. */
export function codeOf(error: FastifyError | Error): string {
  if (error instanceof Refused || error instanceof OnlyonceError) return error.code
  if (error instanceof GatewayIdTaken) return 'outcome_pending'
  const { validation, statusCode, code } = error as FastifyError
  if (validation !== undefined) return 'invalid_request'
  const known = FRAMEWORK[code]
  if (known !== undefined) return known
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return 'invalid_request'
  return isNotNow(error) ? 'unavailable' : 'internal'
}

/** Nothing was started: where a key was claimed for the request, the key is free again. */
function sendRefusal(error: Refused, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { code, details } = error
  if (didNothing(error)) request.idempotency?.invalid()
  return sendProblem(request, reply, code, details)
}

const FRAMEWORK: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'media_type_unsupported',
  FST_ERR_CTP_EMPTY_TYPE: 'media_type_unsupported',
}

interface Told {
  readonly status: number
  readonly code: string
  readonly [member: string]: unknown
}

/**
 * What writes about webhook endpoints refuse before they did anything. The library cannot say so of the route of a service, which may
 * have done something before; these routes do nothing else.
 */
const ENDPOINT_REFUSALS: ReadonlySet<string> = new Set<ErrorCode>([
  'webhook_url_refused',
  'webhook_url_taken',
  'webhook_endpoint_invalid',
  'webhook_endpoints_too_many',
  'webhook_endpoint_unknown',
  'webhook_endpoint_disabled',
  'webhook_message_unknown',
])

/** Whether the handler of a write has refused its request before it did anything. */
export function didNothing(error: Error): boolean {
  if (error instanceof Refused) return PROBLEMS[error.code].status < 500
  return error instanceof OnlyonceError && ENDPOINT_REFUSALS.has(error.code)
}

/** Its record is in doubt, and an operator has to end it: told as the next request with the key is. */
function answerTaken(error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  request.log.error({ err: error }, 'a charge belongs to another payment or refund')
  return answerLibrary(new OnlyonceError('outcome_pending', { retryAfterMs: 1_000 }), request, reply)
}

/** The library's sentences are made for clients; those about options of ours are not. */
function answerLibrary(error: OnlyonceError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { code, status, retryable, message, retryAfterMs } = error
  const nothingDone = didNothing(error)
  if (nothingDone) request.idempotency?.invalid()
  const executed = nothingDone ? 'not_by_this_request' : error.executed
  if (status >= 500) request.log.error({ err: error }, 'a request failed')
  if (status >= 500 && !retryable) return sendProblem(request, reply, 'internal')
  const waitMs = retryAfterMs ?? (status === 503 ? 1_000 : null)
  if (waitMs !== null) reply.header('retry-after', Math.max(1, Math.ceil(waitMs / 1_000)))
  return send(request, reply, { ...typeOf(code), status, detail: message, code, retryable, executed })
}

function send(request: FastifyRequest, reply: FastifyReply, body: Told): FastifyReply {
  return reply
    .code(body.status)
    .header('content-type', PROBLEM_TYPE)
    .header('cache-control', 'no-store')
    .send(Buffer.from(JSON.stringify({ ...body, request_id: request.id })))
}
