import { AsyncLocalStorage } from 'node:async_hooks'
import { isDeepStrictEqual } from 'node:util'
import { acrossCopies } from '../core/copies.ts'
import type { IdempotencyContext } from './context.ts'
import { type KeyOf, keySourceOf } from './key-source.ts'
import type { ResolvedPolicy, RoutePolicy } from './policy.ts'
import { type BoundaryRequest, headerOf, type RequestBody } from './request.ts'

/** What a layer is asked for, by one request. */
export interface Asking {
  /** The layer itself. */
  readonly by: object
  /** Whose keys it claims: one front door is one engine. */
  readonly engine: object
  readonly policy: RoutePolicy
  readonly account: string | null
  /** Null where it has no name. */
  readonly operation: string | null
}

/** What a layer around a handler leaves on its request, for a layer inside of it to find. */
export interface Layer extends Asking {
  readonly request: Pick<BoundaryRequest, 'method' | 'path' | 'query' | 'carriers'>
  readonly body: RequestBody
  /** The headers that its key may be in, and what stands there. */
  readonly headers: readonly string[]
  readonly keyHeader: string | readonly string[] | undefined
  /** Reads its key from elsewhere; null for most. */
  readonly keyOf: KeyOf | null
  // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
  readonly context: IdempotencyContext<any>
  /** The layers inside that have let the request through. */
  readonly passed: Set<object>
  /** The bodies of `layer_twice`, as layers inside have answered it in place of their handlers. */
  readonly refusals: Buffer[]
}

/** A layer that was met around a request. */
export interface Met {
  readonly layer: Layer
  /** It is the request of that layer, and not one that its handler has made. */
  readonly same: boolean
}

/** Known to all copies of the package in a process: an application and a library of its own may bring one each. */
const LAYER = Symbol.for('onlyonce.layer')

interface Carrier {
  [LAYER]?: Layer | undefined
}

interface Following {
  storage: AsyncLocalStorage<{ layer: Layer | null }> | null
}

const following = acrossCopies<Following>('following_layers', () => ({ storage: null }))

/**
 * Lets layers find each other by the asynchronous context as well. For frameworks where a new Request is easily made of another one,
 * which has nothing of what was left on the first. Not for the others: on Node.js 20 it makes every promise of the process slower.
 */
export function followLayers(): void {
  following.storage ??= new AsyncLocalStorage()
}

/** The layer that a request is inside of already; undefined for most. Comes at once unless two bodies have to be compared. */
export function layerAround(
  request: BoundaryRequest,
  { headers, keyOf }: Pick<ResolvedPolicy, 'headers' | 'keyOf'>,
  asking: () => Asking,
  read: () => RequestBody | Promise<RequestBody>,
): Met | undefined | Promise<Met | undefined> {
  for (const carrier of request.carriers ?? []) {
    const layer = (carrier as Carrier)[LAYER]
    if (layer !== undefined) return { layer, same: true }
  }
  const layer = following.storage?.getStore()?.layer ?? null
  if (layer === null) return undefined
  if (hasKeyOf(layer, request, headers)) return metInside(layer, request, asking(), read)
  if (keyOf === null && layer.keyOf === null) return undefined
  return givesKeyOf(layer, request, [keyOf, layer.keyOf], read).then((same) =>
    same ? metInside(layer, request, asking(), read) : undefined,
  )
}

/** The same where a function tells the key. What goes wrong with the body or the function is told where the key is read again. */
async function givesKeyOf(
  layer: Layer,
  request: BoundaryRequest,
  keyOfs: readonly (KeyOf | null)[],
  read: () => RequestBody | Promise<RequestBody>,
): Promise<boolean> {
  try {
    const body = await read()
    const given = keyOfs.map((keyOf) => keyOf?.(keySourceOf(request, body)))
    return given.includes(layer.context.key)
  } catch {
    return false
  }
}

function hasKeyOf(layer: Layer, request: BoundaryRequest, headers: readonly string[]): boolean {
  const hasKey = (names: readonly string[]) =>
    layer.keyHeader !== undefined && isDeepStrictEqual(headerOf(request, names), layer.keyHeader)
  return hasKey(headers) || hasKey(layer.headers)
}

/**
 * Whether a request that is made inside of a handler, with its key, is the handler's own once more: it is the same in all that
 * counts, or would claim the same record. A handler may make other requests, for other accounts or to other places: those are
 * protected for themselves.
 */
function metInside(
  layer: Layer,
  request: BoundaryRequest,
  asking: Asking,
  read: () => RequestBody | Promise<RequestBody>,
): Met | undefined | Promise<Met | undefined> {
  if (asking.account !== layer.account) return undefined
  const claimsSame = asking.engine === layer.engine && asking.operation === layer.operation
  const other = claimsSame ? { layer, same: false } : undefined
  if (!isSamePlace(layer, request)) return other
  return isSameBody(layer.body, read).then((same) => (same ? { layer, same } : other))
}

/** What a sub-app is mounted at is taken off its path. */
function isSamePlace({ request: { method, path, query } }: Layer, request: BoundaryRequest): boolean {
  const samePath = path.endsWith(request.path) || request.path === '/'
  return samePath && method === request.method && query === request.query
}

/** A body that cannot be read is none that could be compared: what is wrong with it is told where it is read again. */
async function isSameBody(
  body: RequestBody,
  read: () => RequestBody | Promise<RequestBody>,
): Promise<boolean> {
  try {
    const other = await read()
    if (body.kind === 'raw' && other.kind === 'raw') return Buffer.compare(body.bytes, other.bytes) === 0
    return body.kind === other.kind && isDeepStrictEqual(body, other)
  } catch {
    return false
  }
}

/** Lets a handler run with the mark of its layer on the request. Taken off at its end: a request may be served again then. */
export async function inside<T>(
  carriers: readonly object[],
  layer: Layer,
  run: () => Promise<T>,
): Promise<T> {
  const put = (mark: Layer | undefined) => {
    for (const carrier of carriers) (carrier as Carrier)[LAYER] = mark
  }
  // What the handler has begun and not waited for, such as a timer, keeps the context for ever.
  const mark: { layer: Layer | null } = { layer }
  put(layer)
  try {
    return await (following.storage === null ? run() : following.storage.run(mark, run))
  } finally {
    put(undefined)
    mark.layer = null
  }
}

export function layerOf(
  asking: Asking,
  { headers, keyOf }: Pick<ResolvedPolicy, 'headers' | 'keyOf'>,
  request: BoundaryRequest,
  body: RequestBody,
  // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
  context: IdempotencyContext<any>,
): Layer {
  const keyHeader = headerOf(request, headers)
  return { ...asking, request, body, headers, keyHeader, keyOf, context, passed: new Set(), refusals: [] }
}
