import { OnlyonceError } from '../core/errors.ts'
import { encodePart, encodeParts, isWellFormed } from '../core/parts.ts'
import { operationName } from '../key/scope.ts'
import { writeCanonical } from './canonical.ts'
import type { CompiledFields } from './fields.ts'
import { type InputRead, readInput } from './input.ts'
import { type JsonLimits, resolveLimits } from './json.ts'
import { readMediaType } from './media.ts'
import { parseMultipart } from './multipart.ts'
import { encodeQuery, type Query } from './query.ts'
import { type Selected, selectFields } from './select.ts'
import { type InexactNumber, parseStrictJson } from './strict-json.ts'

/** Part of every stored fingerprint: a change would make every retry of a live record look like a reused key. */
const REQUEST = encodeParts('onlyonce.fingerprint.v1', 'request')
const INPUT = encodeParts('onlyonce.fingerprint.v1', 'input')

/**
 * What a request means, as far as the fingerprint is concerned.
 *
 * @example
 * const request: FingerprintRequest = { method: 'POST', operation: 'payments.create', body }
 */
export interface FingerprintRequest {
  readonly method: string
  readonly operation: string
  readonly pathParams?: Readonly<Record<string, string | undefined>> | undefined
  readonly query?: Query | undefined
  readonly mediaType?: string | undefined
  /** What the body is packed in. Counts where the body counts by its bytes; JSON is given unpacked. */
  readonly encoding?: string | undefined
  /** Whether the body is a form that counts by its parts. */
  readonly multipart?: boolean
  readonly body?: Uint8Array | string | undefined
}

/**
 * What is signed: text, hashed as UTF-8, and after it bytes where a body counts by its bytes.
 *
 * @example
 * const preimage: Preimage = prepareInput({ operation: 'transfers.create', input })
 */
export interface Preimage {
  readonly text: string
  readonly bytes: Uint8Array | null
}

/**
 * Brings a request into the one form that all its spellings share. JSON counts by its meaning, everything
 * else by its bytes.
 *
 * @example
 * const preimage = prepareRequest({
 *   method: 'POST',
 *   operation: 'payments.capture',
 *   pathParams: { id: 'pay_1' },
 *   mediaType: 'application/json',
 *   body: '{"amount":1200}',
 * })
 */
export function prepareRequest(
  request: FingerprintRequest,
  fields?: CompiledFields,
  limits?: JsonLimits,
): Preimage {
  if (typeof request.method !== 'string' || request.method === '') refuse('A request has a method.')
  const media = readMediaType(request.mediaType)
  const start =
    REQUEST +
    encodeParts(request.method.toUpperCase(), operationName(request.operation)) +
    encodePathParams(request.pathParams) +
    encodeQuery(request.query)
  const { body, encoding, multipart } = request
  if (multipart === true) return prepareParts(start, request, limits)
  const head = start + encodePart(media.text)
  if (body === undefined || body.length === 0) return { text: head + encodePart('none'), bytes: null }
  if (!media.json)
    return prepareBytes(encoding === undefined ? head : head + encodeParts('in', encoding), body, limits)
  const { value, inexact } = parseStrictJson(body, limits)
  // Reading it once more sorts the members.
  return prepareJson(head, 'json', readInput(value, limits), inexact, fields)
}

/**
 * Brings an input from code into its canonical form. `undefined` is an input too, and differs from null.
 *
 * @example
 * const preimage = prepareInput({ operation: 'transfers.create', input: { amount: 1200 } })
 */
export function prepareInput(
  { operation, input }: { readonly operation: string; readonly input: unknown },
  fields?: CompiledFields,
  limits?: JsonLimits,
): Preimage {
  const head = INPUT + encodePart(operationName(operation))
  const preimage = prepareJson(head, 'value', readInput(input, limits), [], fields)
  if (preimage.text.length - head.length > resolveLimits(limits).bodySizeMaxBytes) {
    throw new OnlyonceError('input_not_serializable', { detail: 'The input is too large.' })
  }
  return preimage
}

function prepareJson(
  head: string,
  kind: 'json' | 'value',
  read: InputRead,
  inexact: readonly InexactNumber[],
  fields: CompiledFields | undefined,
): Preimage {
  if (read.value === undefined) return { text: head + encodePart('none'), bytes: null }
  const whole = { value: read.value, inexact, gaps: [] }
  const selected = fields === undefined ? whole : selectFields(whole, fields)
  // A list that include made must not pass for a body that is such a list.
  const tag = fields?.include ? `${kind}_fields` : kind
  const text = head + encodeParts(tag, writeCanonical(selected.value, read.ordered))
  return { text: text + encodeNotes(selected), bytes: null }
}

/** What the canonical text cannot say. Numbers are sorted, since members come in any order. */
function encodeNotes({ inexact, gaps }: Selected): string {
  if (inexact.length + gaps.length === 0) return ''
  let text = encodeParts(String(inexact.length), String(gaps.length))
  const sorted = [...inexact].sort((one, other) => (one.pointer < other.pointer ? -1 : 1))
  for (const { pointer, decimal } of sorted) text += encodeParts(pointer, decimal)
  return text + encodeParts(...gaps)
}

function prepareBytes(head: string, body: Uint8Array | string, limits: JsonLimits | undefined): Preimage {
  // UTF-8 cannot carry half a surrogate pair; such text keeps its own encoding and its own kind.
  const illFormed = typeof body === 'string' && !isWellFormed(body)
  const bytes = typeof body === 'string' ? Buffer.from(body, illFormed ? 'utf16le' : 'utf8') : body
  if (bytes.length > resolveLimits(limits).bodySizeMaxBytes) throw new OnlyonceError('body_too_large')
  return { text: `${head}${encodePart(illFormed ? 'utf16' : 'bytes')}${bytes.length}:`, bytes }
}

/** The parts in their order, each with its headers and the length of its content; the contents come behind all of them. */
function prepareParts(
  start: string,
  { mediaType = '', body = '' }: FingerprintRequest,
  limits: JsonLimits | undefined,
): Preimage {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (bytes.length > resolveLimits(limits).bodySizeMaxBytes) throw new OnlyonceError('body_too_large')
  const { parameters, parts } = parseMultipart(mediaType, bytes)
  let text = start + encodeParts('multipart/form-data', 'parts', String(parameters.length), ...parameters)
  text += encodePart(String(parts.length))
  for (const { headers, content } of parts) {
    text += encodeParts(String(headers.length), ...headers.flat(), String(content.length))
  }
  return { text, bytes: Buffer.concat(parts.map(({ content }) => content)) }
}

function encodePathParams(params: Readonly<Record<string, string | undefined>> = {}): string {
  const names = Object.keys(params)
    .filter((name) => params[name] !== undefined)
    .sort()
  let text = encodePart(String(names.length))
  for (const name of names) {
    const value = params[name]
    if (typeof value !== 'string') return refuse('Path parameters are strings.')
    text += encodeParts(name, value)
  }
  return text
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
