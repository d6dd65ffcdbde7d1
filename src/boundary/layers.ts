import { AsyncLocalStorage } from 'node:async_hooks'
import { isDeepStrictEqual } from 'node:util'
import { acrossCopies } from '../copies.ts'
import type { OnceContext } from './context.ts'
import type { RoutePolicy } from './policy.ts'
import { type BoundaryRequest, headerOf } from './request.ts'

/** What a layer is asked for, by one request. */
export interface Asking {
  /** Whose keys it claims: one front door is one engine. */
  readonly engine: object
  readonly policy: RoutePolicy
  readonly account: string | null
  readonly operation: string
}

/** What a layer around a handler leaves on its request, for a layer inside of it to find. */
export interface Layer extends Asking {
  readonly request: Pick<BoundaryRequest, 'method' | 'path' | 'query'>
  /** The headers that its key may be in, and what stands there. */
  readonly headers: readonly string[]
  readonly key_header: string | readonly string[] | undefined
  // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
  readonly context: OnceContext<any>
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

/** The layer that a request is inside of already; undefined for most. `asking` throws where the layer has no name. */
export function layerAround(
  request: BoundaryRequest,
  headers: readonly string[],
  asking: () => Asking,
): Layer | undefined {
  for (const carrier of request.carriers ?? []) {
    const layer = (carrier as Carrier)[LAYER]
    if (layer !== undefined) return layer
  }
  const around = following.storage?.getStore()?.layer ?? null
  return around !== null && isOfSame(around, request, headers, asking) ? around : undefined
}

/**
 * Whether a request that is made inside of a handler is the handler's own once more: it has the same key and goes to the same
 * place, or would claim the same record. A handler may make other requests, with keys of their own or to other places: those
 * are protected for themselves. What a sub-app is mounted at is taken off its path.
 */
function isOfSame(
  around: Layer,
  request: BoundaryRequest,
  headers: readonly string[],
  asking: () => Asking,
): boolean {
  const hasKey = (names: readonly string[]) =>
    around.key_header !== undefined && isDeepStrictEqual(headerOf(request, names), around.key_header)
  if (!hasKey(headers) && !hasKey(around.headers)) return false
  const { method, path, query } = around.request
  const same_path = path.endsWith(request.path) || request.path === '/'
  return (same_path && method === request.method && query === request.query) || wouldClaimSame(around, asking)
}

function wouldClaimSame(around: Layer, asking: () => Asking): boolean {
  try {
    const { engine, account, operation } = asking()
    return engine === around.engine && account === around.account && operation === around.operation
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

/** Whether an inner layer asks for nothing else than the outer one does: then the outer one has done all of it. */
export function isSameLayer(outer: Layer, inner: Asking): boolean {
  return (
    outer.engine === inner.engine &&
    outer.account === inner.account &&
    outer.operation === inner.operation &&
    isDeepStrictEqual(outer.policy, inner.policy)
  )
}
