import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { canonicalJson, isMultipartForm, type Preimage, prepareRequest } from '../fingerprint/index.ts'
import type { ResolvedPolicy } from './policy.ts'

/** The body of a request, as far as an adapter can still see it. */
export type RequestBody =
  /** `decoded`: code before the layer has taken the Content-Encoding off already. */
  | { readonly kind: 'raw'; readonly bytes: Uint8Array; readonly decoded?: boolean }
  | { readonly kind: 'parsed'; readonly value: unknown }

/** A request as the boundary sees it, from every framework. */
export interface BoundaryRequest {
  readonly method: string
  /**
   * The pattern of the route, as it was declared, never as a client spelt it: two spellings of one path must not be two
   * operations. Null where the framework knows none.
   */
  readonly route: string | null
  /** All patterns that the handler was met under, where that is counted: one handler has one name. */
  readonly patterns?: readonly string[]
  /** What the route asks for beside its path, such as a host or a version; '' for most. */
  readonly constraints?: string
  /** The host as the client named it, where the route is bound to hosts: a pattern of hosts may stand for many. */
  readonly host?: string | undefined
  /** The path as the client spelt it. */
  readonly path: string
  readonly pathParams: Readonly<Record<string, string>>
  /** Without the question mark. */
  readonly query: string
  /** Whose request it is; null when no account was authenticated. */
  readonly account: string | null
  /** The framework's own objects for this request: a layer leaves its mark on them, for a second one to find. */
  readonly carriers?: readonly object[]
  header(name: string): string | readonly string[] | undefined
  /** Given at once where it was read already: then a replay from memory waits for nothing. */
  body(): RequestBody | Promise<RequestBody>
}

/** The first of these headers that is there. */
export function headerOf(
  request: BoundaryRequest,
  names: readonly string[],
): string | readonly string[] | undefined {
  for (const name of names) {
    const value = request.header(name)
    if (value !== undefined) return value
  }
  return undefined
}

/**
 * The name of what the request does: the route's own, or method and pattern. It names the scope of the key, so nothing of it may
 * come from the request but its method: a client that spells the path differently would run a second time.
 */
export function operationOf(
  { method, route, patterns = [], constraints = '' }: BoundaryRequest,
  { operation }: Pick<ResolvedPolicy, 'operation'>,
): string {
  if (operation !== null) return operation
  if (route === null) throw new OnlyonceError('operation_missing')
  // None of them: which one came first differs between processes, and another one may be in the middle of it under another name.
  if (patterns.length > 1)
    throw new OnlyonceError('operation_ambiguous', { detail: `See ${patterns.join(', ')}.` })
  return patternOf({ method, route, constraints })!
}

/** The same; null where it has no name. */
export function nameIn(request: BoundaryRequest, policy: Pick<ResolvedPolicy, 'operation'>): string | null {
  try {
    return operationOf(request, policy)
  } catch {
    return null
  }
}

/** How messages name the route of a request; null where it has no pattern. */
export function patternOf({
  method,
  route,
  constraints = '',
}: Pick<BoundaryRequest, 'method' | 'route' | 'constraints'>): string | null {
  return route === null ? null : `${method} ${route}${constraints}`
}

export function preimageOf(
  request: BoundaryRequest,
  body: RequestBody,
  operation: string,
  policy: ResolvedPolicy,
  sizeMaxBytes: number,
): Preimage {
  if (body.kind === 'parsed' && policy.body !== 'parsed') throw new OnlyonceError('raw_body_missing')
  const { method, query } = request
  const mediaType = mediaTypeOf(request)
  const multipart = body.kind === 'raw' && countsByParts(request, mediaType, policy)
  return prepareRequest(
    {
      method,
      operation,
      pathParams: placeOf(request),
      // What stands behind the question mark of the URL may begin with another one.
      query: `?${query}`,
      mediaType,
      encoding: multipart ? undefined : encodingOf(request),
      multipart,
      body: body.kind === 'raw' ? body.bytes : textOf(body.value),
    },
    policy.fields,
    sizeMaxBytes === LIMITS.bodySizeMaxBytes ? undefined : { bodySizeMaxBytes: sizeMaxBytes },
  )
}

/** A form counts by its parts: every client makes a new boundary for a retry. */
function countsByParts(
  request: BoundaryRequest,
  mediaType: string | undefined,
  { body }: Pick<ResolvedPolicy, 'body'>,
): boolean {
  const isForm = isMultipartForm(mediaType)
  if (body === 'multipart' && !isForm) throw new OnlyonceError('body_not_multipart')
  if (!isForm || body === 'raw') return false
  // Parsers of forms do not inflate, so nothing is to be won by doing it here.
  if (encodingOf(request) !== undefined) throw new OnlyonceError('encoding_unsupported')
  return true
}

export function mediaTypeOf(request: Pick<BoundaryRequest, 'header'>): string | undefined {
  const type = request.header('content-type')
  return typeof type === 'string' ? type : type?.[0]
}

/** What the body is packed in, in lower case; undefined where it is packed in nothing. */
export function encodingOf(request: Pick<BoundaryRequest, 'header'>): string | undefined {
  const given = request.header('content-encoding')
  const text = (typeof given === 'string' ? given : given?.join(',')) ?? ''
  const encoding = text.trim().toLowerCase()
  return encoding === '' || encoding === 'identity' ? undefined : encoding
}

/**
 * Where the request went. The parameters alone are not enough: those of a mounted router, and what a pattern leaves open, are not
 * among them. The path as it was spelt is; so one key under two spellings is at worst a reused key. No parameter has a space in
 * its name.
 */
function placeOf({ pathParams, path, constraints, host }: BoundaryRequest): Record<string, string> {
  const place: Record<string, string> = { ...pathParams, 'path as sent': path }
  if (constraints !== undefined && constraints !== '') place['constraints of the route'] = constraints
  if (host !== undefined) place['host as sent'] = host
  return place
}

/** What a parser made of the body, in one form for all orders of its members. */
function textOf(value: unknown): string {
  return canonicalJson(value) ?? ''
}

/**
 * How long the client still wants the request to start, or null. By the clock of the process, as the client's own
 * deadline goes by the client's: it is a wish, and nothing that must not fail depends on it.
 */
export function timeLeftMs(
  request: BoundaryRequest,
  header: string | null,
  now: () => number,
): number | null {
  const value = header === null ? undefined : request.header(header)
  if (value === undefined) return null
  const text = typeof value === 'string' ? value.trim() : ''
  if (/^\d+$/.test(text) && !EPOCH_MS.test(text))
    throw new OnlyonceError('deadline_invalid', { detail: NOT_MILLISECONDS })
  const atMs = EPOCH_MS.test(text) ? Number(text) : ZONED_TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs)) throw new OnlyonceError('deadline_invalid')
  return atMs - now()
}

/** From 1973 to 2286. A time in seconds has ten digits, one in microseconds sixteen, and how long to wait fewer than either. */
const EPOCH_MS = /^[1-9]\d{11,12}$/
const NOT_MILLISECONDS = 'This number is no time in milliseconds, which has 13 digits. Seconds are not taken.'

/** RFC 3339. A time without a zone is another moment in each place. */
const ZONED_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/
