import type { IdempotencyContext } from './context.ts'
import type { HttpReply } from './reply.ts'

// biome-ignore lint/suspicious/noExplicitAny: a layer around this one may have a store of its own.
type AnyContext = IdempotencyContext<any>

/** What an adapter does with the request. */
export type Answer =
  /** Not protected: let it through untouched. Or protected by a layer around this one, whose context it is then. */
  | { readonly answer: 'pass'; readonly context: AnyContext | null }
  /** The handler's own reply may leave now. */
  | { readonly answer: 'release' }
  /** Send this, in place of what the handler replied, if it ran at all. */
  | { readonly answer: 'reply'; readonly reply: HttpReply }

/** Lets the handler run and resolves with its reply, which is not sent before the boundary says so. */
export type RunHandler<Tx> = (context: IdempotencyContext<Tx>) => Promise<HttpReply>
