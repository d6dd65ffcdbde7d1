import { isDeepStrictEqual } from 'node:util'
import { type Asking, inside, type Layer, type Met } from './layers.ts'
import type { ResolvedPolicy } from './policy.ts'
import type { HttpReply } from './reply.ts'
import type { BoundaryRequest } from './request.ts'

/**
 * Whether two layers stand on one request, whose handler has not begun. A layer that meets itself with another object for the request,
 * or that has let the request through already, is asked by the handler.
 */
export function isSame({ layer, same }: Met, { by }: Asking, { carriers = [] }: BoundaryRequest): boolean {
  return same && !layer.passed.has(by) && (layer.by !== by || carriers[0] === layer.request.carriers?.[0])
}

/** Whether an inner layer may let the request through: it asks for nothing else than the outer one does, which has done all of it. */
export function maySkip(layer: Layer, inner: Asking): boolean {
  if (!isSameLayer(layer, inner)) return false
  layer.passed.add(inner.by)
  return true
}

function isSameLayer(outer: Layer, inner: Asking): boolean {
  return (
    outer.engine === inner.engine &&
    outer.account === inner.account &&
    inner.operation !== null &&
    outer.operation === inner.operation &&
    isDeepStrictEqual(outer.policy, inner.policy)
  )
}

/**
 * The handler gave the `layer_twice` of a layer inside as its own reply. Code of the application stood between the two layers, and may
 * have done anything before it handed the request on: that the layer inside ran nothing is no proof for it.
 */
export class RefusedInside extends Error {
  readonly code = 'layer_twice'

  constructor() {
    super('A second idempotency layer refused the request inside of the first one.')
  }
}

/**
 * Lets the handler run, for layers inside to notice. Where its reply is that of a layer inside, it is not kept: only a transaction undoes
 * what was done before, and may run again. Any other reply is the handler's own: it has gone on after the refusal.
 */
export async function runInside(
  layer: Layer,
  { protect }: Pick<ResolvedPolicy, 'protect'>,
  run: () => Promise<HttpReply>,
): Promise<HttpReply> {
  const reply = await inside(layer.request.carriers ?? [], layer, run)
  if (!layer.refusals.some((body) => body.equals(reply.body))) return reply
  if (protect === 'handler') throw new RefusedInside()
  layer.context.notExecuted()
  return reply
}
