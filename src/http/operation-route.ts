import type { Operation } from '../operation/operation.ts'
import type { OperationSource } from './operation-input.ts'
import type { RoutePolicy, StandardSchema } from './policy.ts'

/** What the `operation` of a route may be. */
export type Named = RoutePolicy['operation']

/** A durable operation, with any input. */
export type Durable = Operation<never, unknown>

/**
 * What a durable operation asks of the other options of its route: `input`, or a schema where there is none, makes what the operation takes,
 * and there is no `protect`, because an operation brings its own. Nothing is asked of a route whose operation is a name.
 */
export type FitsOperation<O extends Named> = [O] extends [Operation<infer Input, unknown>]
  ? { readonly operation: O; readonly protect?: undefined } & Given<NoInfer<Input>>
  : { readonly operation?: O }

/** What `input` makes of a request, or else what a schema makes of its body. */
type Given<Input> =
  | { readonly input: (source: OperationSource) => Input; readonly validate?: StandardSchema }
  | { readonly input?: undefined; readonly validate?: StandardSchema & SchemaOf<Input> }

/** Schemas that say no type are taken as they are. */
interface SchemaOf<Output> {
  readonly '~standard': { readonly types?: { readonly output: Output } | undefined }
}
