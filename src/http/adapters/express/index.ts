import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import { acrossCopies } from '../../../core/copies.ts'
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
import { readBytes } from '../node/body.ts'
import { keepConnection } from '../node/late.ts'
import { type Known, requestOf, serve } from '../node/serve.ts'
import { patternText } from '../place.ts'
import { errorFor, passOn, type ThrowHearer } from '../said.ts'

export type { IdempotencyContext, RequestContext } from '../../index.ts'
export { keepRawBody } from '../node/body.ts'

declare global {
  namespace Express {
    interface Request {
      /**
       * Set while a request is protected. A handler that is passed to `idempotent()` is given the same, with its type. Not `once`: a
       * request is an emitter of events, and `pipe` calls its `once`.
       */
      // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
      idempotency?: IdempotencyContext<any>
    }
  }
}

/** What Express adds to Node's request, as far as it is needed here; version 4 and 5 agree on it. */
export interface ExpressRequest extends IncomingMessage {
  // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
  readonly idempotency?: IdempotencyContext<any> | undefined
  readonly originalUrl: string
  readonly baseUrl: string
  // biome-ignore lint/suspicious/noExplicitAny: Express types routes and parameters differently in each version.
  readonly route?: any
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  readonly params: any
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  readonly app?: any
}

export interface ExpressOptions<Req> extends RoutePolicy {
  /**
   * Whose request it is, after your own authentication; one without an account is refused with 401. Or the only account, where a
   * service has one tenant.
   */
  readonly account: Account<[request: Req]>
}

type Next = (error?: unknown) => void
type Middleware<Req, Res> = (request: Req, response: Res, next: Next) => void

/**
 * Protects a route of Express 4 or 5: as a middleware, whose context is `req.idempotency`, or with the handler, which is given the
 * context with its type.
 *
 * @example
 * app.post('/orders', idempotent(once, { account: (req) => req.user.account }), express.json(), createOrder)
 * app.post('/transfers', idempotent(once, { account, protect: 'transaction' }, async (req, res, { tx }) => {
 *   const { rows } = await tx.query('INSERT INTO transfers …')
 *   res.status(201).json(rows[0])
 * }))
 */
export function idempotent<Tx, Req extends ExpressRequest = Request, const O extends Named = Named>(
  once: Onlyonce<Tx>,
  options: ExpressOptions<Req> & FitsOperation<O>,
): Middleware<Req, ServerResponse>
export function idempotent<
  Tx,
  Req extends ExpressRequest = Request,
  Res extends ServerResponse = Response,
  P extends Protect = 'handler',
  K extends KeyOption | undefined = undefined,
  F extends Profile | undefined = undefined,
  S extends Schema = undefined,
>(
  once: Onlyonce<Tx>,
  options: ExpressOptions<Req> & HandlerRoute<P, K, F, S>,
  handler: (request: Req, response: Res, context: RouteContext<Tx, P, K, F, S>, next: Next) => unknown,
): Middleware<Req, Res>
export function idempotent<Tx>(
  once: Onlyonce<Tx>,
  options: ExpressOptions<ExpressRequest>,
  handler?: (request: ExpressRequest, response: ServerResponse, context: never, next: Next) => unknown,
): Middleware<ExpressRequest, ServerResponse> {
  const { account, policy } = accountAndPolicy(LAYER, options)
  const boundary = new Boundary(once, policy, LAYER)
  if (boundary.policy.durable !== null) refuseHandler(LAYER, handler)
  else if (handler !== undefined) checkHandler(LAYER, handler)
  return function idempotency(request, response, next) {
    const go = (context: IdempotencyContext<Tx> | null) => {
      if (context !== null) Object.assign(request, { idempotency: context })
      if (handler !== undefined) {
        const given = contextFor<never>(context, request.method ?? '', boundary.policy)
        const run = async () => await handler(request, response, given, next)
        run().catch((error) => hearNotExecuted(errorFor(error), request, response, next))
        return
      }
      if (context !== null) hearErrors(request)
      next()
    }
    const { bodySizeMaxBytes } = boundary
    if (!boundary.protects(requestOf(request, request.originalUrl, ANONYMOUS, bodySizeMaxBytes)))
      return go(null)
    accountOf(account, request)
      .then((whose) => {
        const known = { ...placeOf(request), account: whose }
        const asked = requestOf(request, request.originalUrl, known, bodySizeMaxBytes)
        const body = () => readBytes(request, bodySizeMaxBytes, boundary.policy, HOW_TO_KEEP)
        return serve(boundary, { ...asked, body }, response, go)
      })
      .catch((error) => next(errorFor(error)))
  }
}

const LAYER = 'idempotent() for Express'
const HOW_TO_KEEP = 'In Express: app.use(express.json({ verify: keepRawBody })).'
const ANONYMOUS = { route: null, pathParams: {}, account: null }

/**
 * The pattern of the route that the request matched, with its parameters. Where the router is mounted counts in the fingerprint as
 * it was spelt: the parameters of a mount are not among those of the route, and a rewritten path is in no other place.
 */
function placeOf({ route, baseUrl, params, app }: ExpressRequest): Omit<Known, 'account'> {
  const pattern = patternText(route?.path)
  const pathParams: Record<string, string> = baseUrl === '' ? {} : { [MOUNTED_AT]: baseUrl }
  for (const [name, value] of Object.entries(params ?? {})) {
    // Version 5 gives the pieces of a wildcard as a list.
    if (value !== undefined) pathParams[name] = typeof value === 'string' ? value : JSON.stringify(value)
  }
  return { route: pattern === null ? null : `${mountOf(app)}${pattern}`, pathParams }
}

/**
 * The patterns that an application is mounted at. Express keeps them for applications alone: a router does not know where it is
 * mounted, and neither version of Express remembers the pattern. `baseUrl` is no pattern but what the client has spelt, in any
 * case that it likes, so it is never a part of the name.
 */
function mountOf(app: ExpressRequest['app']): string {
  let mount = ''
  for (let one = app; one?.parent !== undefined; one = one.parent) {
    if (one.mountpath !== '/') mount = `${patternText(one.mountpath) ?? ''}${mount}`
  }
  return mount
}

/** No parameter of a route has a space in its name. */
const MOUNTED_AT = 'mounted at'

/**
 * Tells the boundary when a handler throws: `notExecuted()`, `invalid()`, or anything in a transaction, which is rolled back then.
 * Routes are given it by themselves; where the layer is mounted with `app.use`, mount this behind the routes.
 *
 * @example
 * app.use('/v1/refunds', idempotent(once, { account, operation: 'refunds.create' }), refunds)
 * app.use(hearNotExecuted)
 */
export function hearNotExecuted(
  error: unknown,
  request: { readonly idempotency?: ThrowHearer | undefined },
  response: unknown,
  next: (error?: unknown) => void,
): void {
  const { writableEnded, destroy } = response as ServerResponse
  passOn(request.idempotency, error, writableEnded)
  // Where the reply has begun, Express destroys the socket, of which the layer would learn nothing. A reply that is whole may be held back still.
  if (request.idempotency !== undefined)
    keepConnection(request as unknown as IncomingMessage, () => Reflect.apply(destroy, response, []))
  next(error)
}

/** Routes that end with `hearNotExecuted` already, by method. */
const hearing = acrossCopies('express_routes', () => new WeakMap<object, Set<string>>())

/** Express turns what a handler throws into a response, far from here: the route itself has to hear it before. */
function hearErrors({ route, method = '' }: ExpressRequest): void {
  const verb = method.toLowerCase()
  if (typeof route?.[verb] !== 'function') return
  const verbs = hearing.get(route) ?? new Set()
  if (verbs.has(verb)) return
  hearing.set(route, verbs.add(verb))
  // At the end, and before each error handler that the route has itself: those after a handler that throws are asked in turn.
  const stack: { readonly handle: unknown }[] = route.stack
  for (let i = stack.length - 1; i >= -1; i -= 1) {
    if (i >= 0 && (stack[i]!.handle as { length?: number }).length !== ERROR_HANDLER_ARGUMENTS) continue
    route[verb](hearNotExecuted)
    if (i >= 0) stack.splice(i, 0, stack.pop()!)
  }
}

const ERROR_HANDLER_ARGUMENTS = 4
