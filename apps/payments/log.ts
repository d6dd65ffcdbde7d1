import { type FastifyBaseLogger, type FastifyRequest, fastify } from 'fastify'
import { maskCardNumbers } from 'onlyonce/keys'
import type { LogLevel } from './config.ts'

/** What never stands in a log, wherever it turns up. Keys of clients are no secrets, but say whose request it was. */
const HIDDEN = [
  'authorization',
  'idempotency-key',
  'api_key',
  'apiKey',
  'secret',
  'payment_method',
  'paymentMethod',
  'stripe-signature',
  'connectionString',
]

/** pino, as Fastify makes it: for processes that only work as well. */
export function openLog(level: LogLevel): FastifyBaseLogger {
  const paths = HIDDEN.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`])
  const logger = {
    level,
    redact: { paths, censor: '[hidden]' },
    serializers: { req: describeRequest, err: describeError },
  }
  return fastify({ logger }).log
}

/** Keys say whose request it was, and stand in one path. */
const KEY_PATH = /^(\/v1\/idempotency-keys\/).+/

/** Without the query: references and metadata are asked for there. A path may hold anything that a client wrote. */
function describeRequest(request: FastifyRequest) {
  const { method, url, ip } = request
  const path = url?.split('?', 1)[0]
  return {
    method,
    path: path === undefined ? path : maskCardNumbers(path.replace(KEY_PATH, '$1[hidden]')),
    remote_address: ip,
  }
}

/** Not all that an error of a driver carries: its detail holds values of rows. */
function describeError(error: Error & { readonly code?: unknown }) {
  const { name, code, message, stack } = error
  return { type: name, code, message, stack: stack ?? '' }
}
