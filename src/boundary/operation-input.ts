import { OnlyonceError } from '../errors.ts'
import { readMediaType } from '../fingerprint/index.ts'
import { encodeValue } from '../value.ts'
import type { ResolvedPolicy } from './policy.ts'
import type { BoundaryRequest, RequestBody } from './request.ts'

/** What the input of an operation can be made from. */
export interface OperationSource {
  readonly account: string
  /** The body where it is JSON; undefined where there is none, or it is not. */
  readonly body: unknown
  /** The bytes of the body; null where the framework has kept only what it parsed. */
  readonly bytes: Uint8Array | null
  /** As the client spelt it. */
  readonly path: string
  readonly path_params: Readonly<Record<string, string>>
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
  const value = jsonOf(request, body)
  if (policy.input === null) {
    if (bytes !== null && bytes.length > 0 && !isJson(request)) throw new OnlyonceError('body_not_json')
    return encodeValue(value).body!
  }
  const { account, path, path_params, query } = request
  return encodeValue(policy.input({ account: account!, body: value, bytes, path, path_params, query })).body!
}

/** The body where it is JSON, else undefined. Its form was checked when it was fingerprinted. */
export function jsonOf(request: BoundaryRequest, body: RequestBody): unknown {
  if (body.kind === 'parsed') return body.value
  if (body.bytes.length === 0 || !isJson(request)) return undefined
  return JSON.parse(Buffer.from(body.bytes).toString('utf8'))
}

function isJson(request: BoundaryRequest): boolean {
  const type = request.header('content-type')
  return readMediaType(typeof type === 'string' ? type : type?.[0]).json
}
