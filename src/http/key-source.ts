import { OnlyonceError } from '../core/errors.ts'
import { checkKey, type ResolvedKeyRules } from '../key/index.ts'
import { jsonOf, type OperationSource } from './operation-input.ts'
import type { BoundaryRequest, RequestBody } from './request.ts'
import { RouteThrew } from './route-threw.ts'

/** What a key can be read from, in every framework and before any parser. */
export interface KeySource extends OperationSource {
  /** A header that was sent repeatedly comes as one, joined with commas. */
  header(name: string): string | undefined
}

/** Tells the key of a request that carries it elsewhere than in a header. Without a key the request is refused. */
export type KeyOf = (source: KeySource) => string | null | undefined

/**
 * The key of a request, by the function of its route, under the same rules as any other key. What the function throws is thrown on, for
 * the framework's own error handling: nothing has been claimed.
 */
export function keyFrom(
  keyOf: KeyOf,
  request: BoundaryRequest,
  body: RequestBody,
  rules: ResolvedKeyRules,
): string {
  const given = told(keyOf, keySourceOf(request, body))
  if (given === undefined || given === null) throw new OnlyonceError('key_missing')
  if (typeof (given as { then?: unknown }).then === 'function')
    throw new OnlyonceError('setup_invalid', { detail: 'key gives a text, and no promise of one.' })
  return checkKey(given, rules)
}

function told(keyOf: KeyOf, source: KeySource): unknown {
  try {
    return keyOf(source)
  } catch (error) {
    throw new RouteThrew(error)
  }
}

export function keySourceOf(request: BoundaryRequest, body: RequestBody): KeySource {
  const { account, path, pathParams, query } = request
  return {
    account: account!,
    get body() {
      return jsonOf(request, body)
    },
    bytes: body.kind === 'raw' ? body.bytes : null,
    path,
    pathParams,
    query,
    header(name) {
      const value = request.header(name.toLowerCase())
      return value === undefined || typeof value === 'string' ? value : value.join(', ')
    },
  }
}
