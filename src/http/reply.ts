import { OnlyonceError } from '../core/errors.ts'
import type { Reply } from '../record/index.ts'
import { decodeValue, HTTP_SCHEMA, HTTP_THROWN_SCHEMA, isHttpReply } from '../record/value.ts'
import type { ResolvedPolicy } from './policy.ts'

/** A response as an adapter has captured it, or is to send it. Names are in lower case; one may come repeatedly. */
export interface HttpReply {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

/** What describes the body, or tells where the result is. Everything else belongs to one moment or one client. */
const KEPT = new Set([
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-location',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'vary',
])

/** A response as it is stored. One that is too large leaves no body: it happened, and is not run again. */
export function storedReply(reply: HttpReply, policy: ResolvedPolicy): Reply {
  const { status, headers, body } = reply
  if (status < 200) {
    const detail = `The handler ended with status ${status}, which is no final one: a reply has a status from 200 on.`
    throw new OnlyonceError('option_invalid', { detail })
  }
  return {
    status,
    headers: headers.filter(([name]) => KEPT.has(name) || policy.replyHeaders.has(name)),
    body: body.length > policy.replySizeMaxBytes ? null : body,
    schema: HTTP_SCHEMA,
    sealedBy: null,
  }
}

/** A problem as it is stored where it stands for what the handler threw, so that operators can tell it from a reply of the handler's. */
export function thrownReply(problem: HttpReply, policy: ResolvedPolicy): Reply {
  return { ...storedReply(problem, policy), schema: HTTP_THROWN_SCHEMA }
}

/** A stored reply as it is sent again. Throws where there is none to send. */
export function replayedReply(reply: Reply): HttpReply {
  const { status, headers, body } = ownReply(reply)
  return { status, headers: [...headers, REPLAYED], body }
}

/** A reply that was made by an operation, or by a call from code, as it is sent. */
export function ownReply(reply: Reply): HttpReply {
  if (!isHttpReply(reply)) return valueReply(reply)
  if (reply.body === null) {
    throw new OnlyonceError('reply_not_kept', { detail: `Its status was ${reply.status}.` })
  }
  return { status: reply.status, headers: reply.headers, body: reply.body }
}

/** The work was done by a call from code with the same scope and key: its value, as JSON. */
function valueReply(reply: Reply): HttpReply {
  const value = decodeValue(reply)
  const body = value === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(value))
  const type = ['content-type', 'application/json'] as const
  return {
    status: body.length === 0 ? 204 : reply.status,
    headers: body.length === 0 ? [] : [type],
    body,
  }
}

const REPLAYED = ['idempotent-replayed', 'true'] as const
