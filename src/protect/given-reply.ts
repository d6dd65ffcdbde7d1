import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type { Reply } from '../record/index.ts'
import { HTTP_SCHEMA } from '../record/value.ts'
import { whyNotSendable } from './sendable.ts'

/** The reply that every retry gets from now on, as it would have been sent. */
export interface GivenReply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /**
   * For calls from code it has to be JSON: the value that they get. Where `headers` names no content type, it has to be JSON or
   * empty, and its type is application/json.
   */
  readonly body?: string | Uint8Array
}

const NAMES: OptionNames<GivenReply> = { status: true, headers: true, body: true }

/** Checks what an operator gave and makes it a reply. */
export function replyOf(given: GivenReply): Reply {
  refuseUnknown('The reply of operator.resolve()', given, NAMES)
  const { status, headers = {}, body = '' } = given
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    refuse('The status of the reply must be a number from 200 to 599.')
  }
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    refuse('The body of the reply must be a text or bytes.')
  }
  const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : Buffer.from(body)
  if (bytes.length > LIMITS.replySizeMaxBytes) throw new OnlyonceError('value_too_large')
  return {
    status,
    headers: withType(headersOf(headers), bytes),
    body: bytes,
    schema: HTTP_SCHEMA,
    sealedBy: null,
  }
}

/**
 * Clients parse a body by its type, and most replies that are given here are what `JSON.stringify` has made. A body that is neither
 * JSON nor named otherwise would be kept for ever, and a call from code could never read it.
 */
function withType(headers: Reply['headers'], body: Buffer): Reply['headers'] {
  const typed = headers.some(([name]) => name === 'content-type')
  if (typed || body.length === 0) return headers
  if (!isJson(body)) {
    refuse(
      'The body of the reply is not JSON. For a call from code give JSON; for a route name its content type in headers.',
    )
  }
  return [...headers, ['content-type', 'application/json']]
}

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(body.toString('utf8'))
    return true
  } catch {
    return false
  }
}

function headersOf(given: Readonly<Record<string, string>>): Reply['headers'] {
  return Object.entries(given).map(([givenName, value]) => {
    if (whyNotSendable(givenName, value) !== null) {
      refuse(`The header ${JSON.stringify(givenName)} cannot be replayed.`)
    }
    return [givenName.toLowerCase(), value] as const
  })
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
