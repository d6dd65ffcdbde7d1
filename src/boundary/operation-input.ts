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
  const type = request.header('content-type')
  const { json } = readMediaType(typeof type === 'string' ? type : type?.[0])
  const bytes = body.kind === 'raw' ? body.bytes : null
  const empty = bytes !== null && bytes.length === 0
  const value = body.kind === 'parsed' ? body.value : json && !empty ? parse(body.bytes) : undefined
  if (policy.input === null) {
    if (body.kind === 'raw' && !json && !empty) throw new OnlyonceError('body_not_json')
    return encodeValue(value).body!
  }
  const { account, path_params, query } = request
  return encodeValue(policy.input({ account: account!, body: value, bytes, path_params, query })).body!
}

/** Its form was checked when it was fingerprinted. */
function parse(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString('utf8'))
}
