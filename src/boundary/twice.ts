import { isDeepStrictEqual } from 'node:util'
import { type Asking, inside, type Layer, type Met, type Refusal } from './layers.ts'
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
 * What layers inside have refused, where the reply of the outer handler is that very answer. Any other reply is the handler's own: it
 * has gone on after the refusal, and no layer inside can say that it did nothing.
 */
function refusalsIn({ refusals }: Layer, { body }: HttpReply): readonly Refusal[] {
  return refusals.filter((refusal) => refusal.body.equals(body))
}

/**
 * Lets the handler run, for layers inside to notice. Where its reply is that of a layer inside, that is not kept: either the layers
 * stand on one request, and nothing ran; or the handler had begun, and only a transaction undoes what it did.
 */
export async function runInside(
  layer: Layer,
  { protect }: Pick<ResolvedPolicy, 'protect'>,
  run: () => Promise<HttpReply>,
  failed: () => HttpReply,
): Promise<HttpReply> {
  const reply = await inside(layer.request.carriers ?? [], layer, run)
  const refusals = refusalsIn(layer, reply)
  if (refusals.length === 0) return reply
  const has_begun = layer.passed.size > 0 || refusals.some(({ same }) => !same)
  if (has_begun && protect === 'handler') return failed()
  layer.context.notExecuted()
  return reply
}
