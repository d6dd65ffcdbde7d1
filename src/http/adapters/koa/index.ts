import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Onlyonce } from '../../../onlyonce/door.ts'
import {
  Boundary,
  contextFor,
  type HandlerRoute,
  type IdempotencyContext,
  type KeyOption,
  type Profile,
  type Protect,
  type RouteContext,
  type RoutePolicy,
  type Schema,
} from '../../index.ts'
import type { FitsOperation, Named } from '../../operation-route.ts'
import { type Account, accountAndPolicy, accountOf, checkHandler, refuseHandler } from '../account.ts'
import type { Headers } from '../node/capture.ts'
import { requestOf, serve } from '../node/serve.ts'
import { passOn } from '../said.ts'
import { bodyOf } from './body.ts'
import { placeOf } from './place.ts'
import { standApart } from './stand-apart.ts'

export type { IdempotencyContext, RequestContext } from '../../index.ts'
export { keepRawBody } from '../node/body.ts'

/** What Koa's context has, as far as it is needed here; version 2 and 3 agree on it. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly request: object
  readonly response: object
  readonly originalUrl: string
  respond?: boolean | undefined
}

export interface KoaOptions<Ctx> extends RoutePolicy {
  /**
   * Whose request it is, after your own authentication; one without an account is refused with 401. Or the only account, where a
   * service has one tenant.
   */
  readonly account: Account<[ctx: Ctx]>
}

type Next = () => Promise<unknown>
type Middleware<Ctx> = (ctx: Ctx, next: Next) => Promise<void>

/**
 * Protects a route of Koa 2 or 3, or, by `app.use`, everything behind it. As a middleware it leaves its context in `ctx.idempotency`; a
 * handler that is passed to it is given the context with its type.
 *
 * @example
 * router.post('/orders', idempotent(once, { account: (ctx) => ctx.state.account }), createOrder)
 * router.post('/transfers', idempotent(once, { account, protect: 'transaction' }, async (ctx, { tx }) => {
 *   const { rows } = await tx.query('INSERT INTO transfers …')
 *   ctx.status = 201
 *   ctx.body = rows[0]
 * }))
 */
// biome-ignore lint/suspicious/noExplicitAny: what is on a context is the application's own to say.
export function idempotent<Tx, Ctx extends KoaContext = any, const O extends Named = Named>(
  once: Onlyonce<Tx>,
  options: KoaOptions<Ctx> & FitsOperation<O>,
): Middleware<Ctx>
export function idempotent<
  Tx,
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  Ctx extends KoaContext = any,
  P extends Protect = 'handler',
  K extends KeyOption | undefined = undefined,
  F extends Profile | undefined = undefined,
  S extends Schema = undefined,
>(
  once: Onlyonce<Tx>,
  options: KoaOptions<Ctx> & HandlerRoute<P, K, F, S>,
  handler: (ctx: Ctx, context: RouteContext<Tx, P, K, F, S>, next: Next) => unknown,
): Middleware<Ctx>
export function idempotent<Tx>(
  once: Onlyonce<Tx>,
  options: KoaOptions<KoaContext>,
  handler?: (ctx: KoaContext, context: never, next: Next) => unknown,
): Middleware<KoaContext> {
  const { account, policy } = accountAndPolicy(LAYER, options)
  const boundary = new Boundary(once, policy, LAYER)
  if (boundary.policy.durable !== null) refuseHandler(LAYER, handler)
  else if (handler !== undefined) checkHandler(LAYER, handler)
  return async function idempotency(ctx, next) {
    const { req, res, originalUrl } = ctx
    const { bodySizeMaxBytes } = boundary
    const go = async (context: IdempotencyContext<Tx> | null) => {
      if (context !== null) Object.assign(ctx, { idempotency: context })
      if (handler === undefined) await next()
      else await handler(ctx, contextFor<never>(context, req.method ?? '', boundary.policy), next)
    }
    if (!boundary.protects(requestOf(req, originalUrl, ANONYMOUS, bodySizeMaxBytes))) return await go(null)
    const whose = await accountOf(account, ctx)
    const request = {
      ...requestOf(req, originalUrl, { ...placeOf(ctx), account: whose }, bodySizeMaxBytes),
      body: () => bodyOf(ctx, boundary),
    }
    await inMiddleware((resolve, reject) => {
      let entered = false
      const run = (context: IdempotencyContext<Tx> | null) => {
        entered = true
        if (context !== null) standApart(ctx)
        go(context).then(resolve, (error) => {
          passOn(context, error, res.writableEnded)
          // Koa answers no error behind a response that has begun, and would leave it open.
          if (context !== null && res.headersSent && !res.writableEnded) res.destroy()
          reject(error)
        })
      }
      // Koa makes the response when all middleware is through: behind this one, and held back until it may leave.
      const before = () => res.getHeaders() as Headers
      Promise.resolve(serve(boundary, request, res, run, before, true)).then(() => {
        if (entered) return
        ctx.respond = false
        resolve()
      }, reject)
    })
  }
}

const LAYER = 'idempotent() for Koa'
const ANONYMOUS = { route: null, pathParams: {}, account: null }

function inMiddleware(run: (resolve: () => void, reject: (error: unknown) => void) => void): Promise<void> {
  return new Promise<void>(run)
}
