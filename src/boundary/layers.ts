import { isDeepStrictEqual } from 'node:util'
import type { OnceContext } from './context.ts'
import type { RoutePolicy } from './policy.ts'

/** What a layer around a handler leaves on its request, for a layer inside of it to find. */
export interface Layer {
  /** Whose keys it claims: one front door is one engine. */
  readonly engine: object
  readonly policy: RoutePolicy
  readonly account: string | null
  readonly operation: string
  // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
  readonly context: OnceContext<any>
}

/** Known to all copies of the package in a process: an application and a library of its own may bring one each. */
const LAYER = Symbol.for('onlyonce.layer')

interface Carrier {
  [LAYER]?: Layer | undefined
}

/** The layer that a request is inside of already; undefined for most. */
export function layerAround(carriers: readonly object[]): Layer | undefined {
  for (const carrier of carriers) {
    const layer = (carrier as Carrier)[LAYER]
    if (layer !== undefined) return layer
  }
  return undefined
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
  put(layer)
  try {
    return await run()
  } finally {
    put(undefined)
  }
}

/** Whether an inner layer asks for nothing else than the outer one does: then the outer one has done all of it. */
export function isSameLayer(outer: Layer, inner: Omit<Layer, 'context'>): boolean {
  return (
    outer.engine === inner.engine &&
    outer.account === inner.account &&
    outer.operation === inner.operation &&
    isDeepStrictEqual(outer.policy, inner.policy)
  )
}
