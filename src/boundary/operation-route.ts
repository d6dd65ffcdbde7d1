import type { Operation } from '../protect/operation.ts'
import type { OperationSource } from './operation-input.ts'
import type { RoutePolicy, StandardSchema } from './policy.ts'

/** What the `operation` of a route may be. */
export type Named = RoutePolicy['operation']

/**
 * What a durable operation asks of the other options of its route: `input` makes what the operation takes, a schema lets pass what it takes,
 * and there is no `protect`, because an operation brings its own. Nothing is asked of a route whose operation is a name.
 */
export type FitsOperation<O extends Named> = [O] extends [Operation<infer Input, unknown>]
  ? {
      readonly operation: O
      readonly protect?: undefined
      readonly input?: (source: OperationSource) => NoInfer<Input>
      readonly validate?: StandardSchema & SchemaOf<NoInfer<Input>>
    }
  : { readonly operation?: O }

/** Schemas that say no type are taken as they are. */
interface SchemaOf<Input> {
  readonly '~standard': { readonly types?: { readonly input: Input } | undefined }
}
