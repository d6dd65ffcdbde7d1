/** How work says that the request itself is wrong, and what is answered to that. */
import { acrossCopies } from './copies.ts'
import { OnlyonceError } from './errors.ts'
import { type OptionNames, refuseUnknown } from './options.ts'

/** One thing that is wrong with a request, as a client is told it. */
export interface InvalidIssue {
  /** A JSON Pointer; '' is the body itself. */
  readonly path: string
  readonly message: string
}

/** What a client is answered. Without `body` it is a problem (RFC 9457) with the code `request_invalid`. */
export interface InvalidAnswer {
  /** From 400 to 499; 400 where nothing is said. */
  readonly status?: number
  /** A sentence for the client, behind the usual one of the problem. */
  readonly detail?: string
  /** What is wrong, member by member, in the problem. */
  readonly issues?: readonly InvalidIssue[]
  /** Sent as JSON in place of the problem. */
  readonly body?: unknown
}

const NAMES: OptionNames<InvalidAnswer> = { status: true, detail: true, issues: true, body: true }

/** Only errors that `invalid()` has made are here, so that no other error with the same code frees a key. */
const answers = acrossCopies('invalid_answers', () => new WeakMap<object, InvalidAnswer>())

/**
 * What work throws, before it has done anything, when the request itself is wrong. Nothing is stored: a corrected request
 * with the same key runs. After an effect it must not be thrown. Make a new one for each request.
 *
 * @example
 * if (cart.items.length === 0) throw invalid({ status: 422, detail: 'The cart is empty.' })
 */
export function invalid(answer: InvalidAnswer = {}): OnlyonceError {
  refuseUnknown('invalid()', answer, NAMES)
  const { status = 400, body } = answer
  if (!isClientError(status)) refuse('a status from 400 to 499')
  if (body !== undefined && !isJson(body)) refuse('a body that JSON can hold')
  return withAnswer(new OnlyonceError('request_invalid', told(answer)), answer)
}

/** The same word about a record that an earlier request has left: the key is not free. */
export function keptInvalid(error: OnlyonceError): OnlyonceError {
  const answer = answers.get(error) ?? {}
  return withAnswer(new OnlyonceError('request_invalid_kept', { ...told(answer), cause: error }), answer)
}

/** What is to be answered to an error that `invalid()` has made; null for all others. */
export function invalidAnswerOf(error: unknown): InvalidAnswer | null {
  return (error instanceof OnlyonceError && answers.get(error)) || null
}

export function isClientError(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status <= 499
}

function told({ detail, status }: InvalidAnswer): { readonly detail?: string; readonly status?: number } {
  return { ...(detail !== undefined && { detail }), ...(status !== undefined && { status }) }
}

function isJson(body: unknown): boolean {
  try {
    return JSON.stringify(body) !== undefined
  } catch {
    return false
  }
}

function refuse(what: string): never {
  throw new OnlyonceError('option_invalid', { detail: `invalid() takes ${what}.` })
}

function withAnswer(error: OnlyonceError, answer: InvalidAnswer): OnlyonceError {
  answers.set(error, answer)
  return error
}
