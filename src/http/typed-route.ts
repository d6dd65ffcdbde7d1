/** What the compiler knows of a route with a handler: what the route asks for decides what its handler is given. */
import type { IdempotencyContext, RequestContext } from './context.ts'
import type { RoutePolicy } from './policy.ts'
import type { Profile } from './profiles.ts'
import type { StandardSchema } from './validate.ts'

export type Protect = NonNullable<RoutePolicy['protect']>
export type KeyOption = NonNullable<RoutePolicy['key']>
export type Schema = StandardSchema | undefined

/** The options that decide what a handler is given, each by its exact type. */
export interface Asks<
  P extends Protect,
  K extends KeyOption | undefined,
  F extends Profile | undefined,
  S extends Schema,
> {
  readonly protect?: P
  readonly key?: K
  readonly profile?: F
  readonly validate?: S
}

/** The same of a route with a handler. Its operation is a name: a durable operation answers its requests itself, and takes no handler. */
export interface HandlerRoute<
  P extends Protect,
  K extends KeyOption | undefined,
  F extends Profile | undefined,
  S extends Schema,
> extends Asks<P, K, F, S> {
  readonly operation?: string
  readonly input?: undefined
}

/**
 * The context of a handler: `tx` is there exactly where the route has `protect: 'transaction'`, `input` exactly where it has a schema.
 * It is null for a request without a key, where keys are optional.
 */
export type RouteContext<
  Tx,
  P extends Protect,
  K extends KeyOption | undefined,
  F extends Profile | undefined,
  S extends Schema,
> = GivenContext<Tx, P, S> | Keyless<K, F>

/** The same of a request that is protected. */
export type GivenContext<Tx, P extends Protect, S extends Schema> = RequestContext &
  ([P] extends ['transaction'] ? Pick<IdempotencyContext<Tx>, 'tx'> : unknown) &
  ([S] extends [StandardSchema] ? { readonly input: OutputOf<S> } : unknown)

/** Null where a request may come without a key. The profiles make keys optional, unless the route says otherwise. */
export type Keyless<K extends KeyOption | undefined, F extends Profile | undefined> = [K] extends [undefined]
  ? [F] extends [undefined]
    ? never
    : null
  : 'optional' extends K
    ? null
    : never

/** What a schema makes of a body. Schemas that say no type make anything. */
type OutputOf<S> = S extends {
  readonly '~standard': { readonly types?: { readonly output: infer Output } | undefined }
}
  ? Output
  : unknown
