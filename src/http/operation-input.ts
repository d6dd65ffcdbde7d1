import { OnlyonceError } from '../core/errors.ts'
import { parseStrictJson, readMediaType } from '../fingerprint/index.ts'
import { encodeInput } from '../record/value.ts'
import type { ResolvedPolicy } from './policy.ts'
import { type BoundaryRequest, mediaTypeOf, type RequestBody } from './request.ts'
import { RouteThrew } from './route-threw.ts'

/** What the input of an operation can be made from. */
export interface OperationSource {
  readonly account: string
  /**
   * The body where it is JSON; undefined where there is none, or it is not. Asking for one with a number that JavaScript would
   * round throws `json_number_inexact`, which claims no key: read such a body from `bytes`.
   */
  readonly body: unknown
  /** The bytes of the body; null where the framework has kept only what it parsed. */
  readonly bytes: Uint8Array | null
  /** As the client spelt it. */
  readonly path: string
  readonly pathParams: Readonly<Record<string, string>>
  /** Without the question mark. */
  readonly query: string
}

/**
 * The input of an operation, as it is stored: what the route makes of the request, or else its JSON body. What the
 * route's function throws is thrown on, for the framework's own error handling: nothing has been claimed.
 */
export function operationInputOf(
  request: BoundaryRequest,
  body: RequestBody,
  policy: ResolvedPolicy,
): Buffer {
  const bytes = body.kind === 'raw' ? body.bytes : null
  if (policy.input === null) {
    refuseNotJson(request, body)
    return encodeInput(exactJsonOf(request, body))
  }
  const { account, path, pathParams, query } = request
  let refused: unknown
  const source = {
    account: account!,
    get body() {
      try {
        return exactJsonOf(request, body)
      } catch (error) {
        refused = error
        throw error
      }
    },
    bytes,
    path,
    pathParams,
    query,
  }
  return encodeInput(made(policy.input, source, (error) => refused !== undefined && error === refused))
}

function made<T>(
  input: (source: OperationSource) => T,
  source: OperationSource,
  isOurs: (error: unknown) => boolean,
): T {
  try {
    return input(source)
  } catch (error) {
    throw isOurs(error) ? error : new RouteThrew(error)
  }
}

/** A body of another kind is told so, and is not taken for one that is missing. */
export function refuseNotJson(request: BoundaryRequest, body: RequestBody): void {
  if (body.kind === 'raw' && body.bytes.length > 0 && !isJson(request))
    throw new OnlyonceError('body_not_json')
}

/** The fingerprint holds every digit; an operation that was given fewer of them would do something else than was asked. */
function exactJsonOf(request: BoundaryRequest, body: RequestBody): unknown {
  const value = jsonOf(request, body)
  if (value === undefined || body.kind === 'parsed') return value
  // Its size was judged when it was read.
  const [inexact] = parseStrictJson(body.bytes, { bodySizeMaxBytes: body.bytes.length }).inexact
  if (inexact === undefined) return value
  throw new OnlyonceError('json_number_inexact', { detail: `See ${inexact.pointer || 'the body itself'}.` })
}

/** The body where it is JSON, else undefined. Its form was checked when it was fingerprinted. */
export function jsonOf(request: BoundaryRequest, body: RequestBody): unknown {
  if (body.kind === 'parsed') return body.value
  if (body.bytes.length === 0 || !isJson(request)) return undefined
  return JSON.parse(Buffer.from(body.bytes).toString('utf8'))
}

function isJson(request: BoundaryRequest): boolean {
  return readMediaType(mediaTypeOf(request)).json
}
