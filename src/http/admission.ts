import { ERRORS, OnlyonceError } from '../core/errors.ts'
import { inTime, LATE } from './in-time.ts'
import { jsonOf } from './operation-input.ts'
import type { ResolvedPolicy } from './policy.ts'
import { problemReply } from './problem.ts'
import type { Ran } from './ran.ts'
import type { HttpReply } from './reply.ts'
import type { BoundaryRequest, RequestBody } from './request.ts'

/** What `admit` is asked about: a request that would run now. */
export interface Asked {
  readonly account: string
  readonly operation: string
  readonly key: string
  /** As the client spelt it. */
  readonly path: string
  readonly pathParams: Readonly<Record<string, string>>
  /** Without the question mark. */
  readonly query: string
  /** The body where it is JSON; undefined where there is none, or it is not. Parsed when it is asked for. */
  body(): unknown
  /** A header that was sent repeatedly comes as one, joined with commas. */
  header(name: string): string | undefined
}

/** Whether a request may run. */
export type Admission = { readonly admit: true } | Refusal

export interface Refusal {
  readonly admit: false
  /**
   * What clients match on: `rate_limited`, `velocity_limited`, `limits_unavailable`, `overloaded`, `not_admitted`, or a code of the
   * route's own, in snake_case. It ends the `type` of the problem.
   */
  readonly code: string
  /** Default: that of the code in the table of errors; 429 for a code of the route's own. */
  readonly status?: 429 | 503
  /** A sentence for the client, in place of the usual one. */
  readonly detail?: string
  /** When it is worth another try. */
  readonly retryAfterMs?: number
  /** Sent beside the usual ones, and in place of those with the same name; those that describe the body stay. */
  readonly headers?: Readonly<Record<string, string>>
}

export type Admit = (asked: Asked) => Admission | Promise<Admission>

/** The request may not run now. Carries what is answered through everything that would have claimed its key. */
export class NotAdmitted extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(`The request was not admitted: ${refusal.code}.`)
    this.refusal = refusal
  }
}

export function askedOf(
  request: BoundaryRequest,
  body: RequestBody,
  id: Pick<Asked, 'account' | 'operation' | 'key'>,
): Asked {
  const { path, pathParams, query } = request
  return {
    ...id,
    path,
    pathParams,
    query,
    body: () => jsonOf(request, body),
    header: (name) => {
      const value = request.header(name.toLowerCase())
      return value === undefined || typeof value === 'string' ? value : value.join(', ')
    },
  }
}

/** Null where the request may run. What `admit` throws is noted, for the framework. */
export async function ask(admit: Admit, asked: Asked, maxMs: number, ran: Ran): Promise<Refusal | null> {
  let given: unknown
  try {
    given = await inTime(admit(asked), maxMs)
  } catch (error) {
    ran.thrown = { error }
    throw error
  }
  if (given === LATE) throw new OnlyonceError('deadline_exceeded', { detail: NOT_DECIDED })
  return refusalOf(given)
}

const NOT_DECIDED = 'Whether it may run was not decided in time.'

/** Null where the request may run. What is no answer at all must not let anything through, nor pass for a refusal. */
export function refusalOf(given: unknown): Refusal | null {
  const said = (given ?? {}) as Partial<Refusal> | { readonly admit: true }
  if (said.admit === true) return null
  if (said.admit !== false) return refuse('admit has to say { admit: true } or { admit: false, code }.')
  const { code = '', status, retryAfterMs = 1 } = said
  if (!/^[a-z][a-z0-9_]{0,63}$/.test(code)) return refuse('the code of a refusal is a name in snake_case.')
  // A client that matches on codes would take it for something else that has happened to its key.
  if (code in ERRORS && !OURS.has(code)) return refuse(`${code} is the code of another error.`)
  if (status !== undefined && status !== 429 && status !== 503)
    return refuse('a refusal has status 429 or 503.')
  if (!Number.isFinite(retryAfterMs)) return refuse('retryAfterMs is a number.')
  return { ...said, admit: false, code }
}

/** What may be said of our own codes, and whether it is 429 or 503. */
const OURS = new Map<string, { readonly status: number; readonly message: string }>(
  (['rate_limited', 'velocity_limited', 'limits_unavailable', 'overloaded', 'not_admitted'] as const).map(
    (code) => [code, ERRORS[code]],
  ),
)

function refuse(detail: string): never {
  throw new OnlyonceError('setup_invalid', { detail })
}

/** A problem like any other of the boundary's, under the code that the route has given. */
export function refusedReply(
  refusal: Refusal,
  policy: Pick<ResolvedPolicy, 'errors' | 'problemBase'>,
): HttpReply {
  const { code, detail, retryAfterMs } = refusal
  const { message } = OURS.get(code) ?? ERRORS.not_admitted
  const status = refusal.status ?? OURS.get(code)?.status ?? ERRORS.not_admitted.status
  // Only a claim could prove more, and a request that is not admitted makes none.
  const told = {
    code,
    status,
    retryable: true,
    executed: 'not_by_this_request',
    message: detail ?? message,
  } as const
  const reply = problemReply(told, policy, retryAfterMs === undefined ? {} : { retryAfterMs })
  const given = Object.entries(refusal.headers ?? {})
    .map(([name, value]) => [name.toLowerCase(), `${value}`] as const)
    .filter(([name]) => !OF_THE_BODY.test(name))
  const replaced = new Set(given.map(([name]) => name))
  return { ...reply, headers: [...reply.headers.filter(([name]) => !replaced.has(name)), ...given] }
}

const OF_THE_BODY = /^(?:content-.*|transfer-encoding|connection|idempotent-replayed)$/
