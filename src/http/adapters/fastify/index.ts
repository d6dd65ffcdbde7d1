import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod, RouteOptions } from 'fastify'
import { acrossCopies } from '../../../core/copies.ts'
import { OnlyonceError } from '../../../core/errors.ts'
import { refuseUnknown } from '../../../core/options.ts'
import type { Onlyonce } from '../../../onlyonce/door.ts'
import type { PostgresTx } from '../../../store/postgres/tx.ts'
import {
  Boundary,
  type HandlerRoute,
  type IdempotencyContext,
  type KeyOption,
  type Profile,
  type Protect,
  type RouteContext,
  type RoutePolicy,
  type Schema,
} from '../../index.ts'
import type { Durable, FitsOperation } from '../../operation-route.ts'
import { type Account, checkAccount, checkHandler, refuseHandler, WITH_ACCOUNT } from '../account.ts'
import { HTTP2_REFUSED } from '../node/serve.ts'
import { constraintsText } from '../place.ts'
import { BODY, Guard, type GuardedRoute, type TypedHandler } from './guard.ts'

export type { IdempotencyContext, RequestContext } from '../../index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Set while a request is protected. A handler that is passed to `idempotent()` is given the same as its third argument, with its
     * type.
     */
    // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
    idempotency?: IdempotencyContext<any>
  }
}

/**
 * What `tx` is in handlers that are passed to `idempotent()`, which is not told of the store. PostgreSQL's, unless the application
 * declares another `tx`.
 *
 * @example
 * declare module 'onlyonce/fastify' {
 *   interface IdempotencyTypes { tx: MyTx }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: applications add to it.
export interface IdempotencyTypes {}
type StoreTx = IdempotencyTypes extends { readonly tx: infer Tx } ? Tx : PostgresTx

type FastifyAccount = Account<[request: FastifyRequest]>

/** What a route may ask for: a policy, and an account that is found in another way than elsewhere. */
export interface FastifyPolicy extends RoutePolicy {
  readonly account?: FastifyAccount
}

/** What the plugin is given. A policy here is that of all its routes, each of which may differ from it. */
export interface FastifyOptions<Tx> extends Omit<RoutePolicy, 'operation'> {
  readonly once: Onlyonce<Tx>
  /**
   * Whose request it is, after your own authentication; one without an account is refused with 401. Or the only account, where a
   * service has one tenant.
   */
  readonly account: FastifyAccount
}

/** Stands among the hooks of a route before its handler. */
// biome-ignore lint/suspicious/noExplicitAny: a hook fits routes of every type, and looks at none of their parts.
export type IdempotentHook = (request: any, reply: any, done: (error?: Error) => void) => void

/** What a route with a handler is made of. Spread it beside other options of the route. */
export interface IdempotentRoute {
  // biome-ignore lint/suspicious/noExplicitAny: it fits routes of every type; what the handler takes is said in the handler.
  readonly handler: (request: any, reply: any) => unknown
}

/** The hooks and handlers that mark a route, and what each asks for. */
const marks = acrossCopies('fastify_marks', () => new WeakMap<object, FastifyPolicy>())
/** What stands behind a handler that marks a route; null for a durable operation, which has no handler. */
const handlers = acrossCopies('fastify_handlers', () => new WeakMap<object, TypedHandler | null>())
/** Known to all copies of the package in a process. */
const HOOK = Symbol.for('onlyonce.hook')

/**
 * Protects a route of Fastify 5. With a handler it makes the options of the route, and the handler is given the context as its third
 * argument; a durable operation takes no handler. Alone it makes a hook. The key is claimed after all hooks of the route: what they
 * refuse claims nothing.
 *
 * @example
 * app.post('/transfers', idempotent({ protect: 'transaction' }, async (request, reply, { tx }) => {
 *   const { rows } = await tx.query('INSERT INTO transfers …')
 *   return reply.code(201).send(rows[0])
 * }))
 * app.post('/payments', { schema, ...idempotent({ operation: createPayment }) })
 * app.post('/orders', { preHandler: idempotent() }, createOrder)
 */
export function idempotent<
  P extends Protect = 'handler',
  K extends KeyOption | undefined = undefined,
  F extends Profile | undefined = undefined,
  S extends Schema = undefined,
  Req = FastifyRequest,
  Rep = FastifyReply,
>(
  policy: FastifyPolicy & HandlerRoute<P, K, F, S>,
  handler: (
    this: FastifyInstance,
    request: Req,
    reply: Rep,
    context: RouteContext<StoreTx, P, K, F, S>,
  ) => unknown,
): IdempotentRoute
export function idempotent<const O extends Durable>(
  policy: FastifyPolicy & FitsOperation<O> & { readonly operation: O },
): IdempotentRoute
export function idempotent(policy?: FastifyPolicy & { readonly operation?: string }): IdempotentHook
export function idempotent(
  policy: FastifyPolicy = {},
  handler?: TypedHandler,
): IdempotentHook | IdempotentRoute {
  const durable = typeof policy.operation === 'object'
  // The plugin puts its own hooks and handlers in the place of these. Where it has not seen the route, nothing runs. A mark in
  // `config` was dropped for this: a route that was added before the plugin was loaded ran unprotected.
  if (!durable && handler === undefined) {
    const hook: IdempotentHook = (request: FastifyRequest, _reply, done) => done(notSeen(request))
    marks.set(hook, policy)
    return Object.assign(hook, { [HOOK]: true })
  }
  if (durable) refuseHandler('idempotent() for Fastify', handler)
  else checkHandler('idempotent() for Fastify', handler)
  const unseen = (request: FastifyRequest) => {
    throw notSeen(request)
  }
  marks.set(unseen, policy)
  handlers.set(unseen, handler ?? null)
  return { handler: Object.assign(unseen, { [HOOK]: true }) }
}

function notSeen({ method, routeOptions }: FastifyRequest): OnlyonceError {
  return new OnlyonceError('setup_invalid', { detail: `${method} ${routeOptions.url}: ${TOO_EARLY}` })
}

const TOO_EARLY =
  'idempotent() is for routes that are added after `await app.register(idempotency, { once, account })`.'

/**
 * The plugin behind `idempotent`. Register it before the routes, and wait for it.
 *
 * @example
 * await app.register(idempotency, { once, account: (request) => request.user.account })
 */
// biome-ignore lint/suspicious/noExplicitAny: with a type of its own to find, `register` would not tell `account` what a request is.
export async function idempotency(app: FastifyInstance, options: FastifyOptions<any>): Promise<void> {
  refuseUnknown('idempotency', options, PLUGIN)
  const { once, account, ...defaults } = options
  checkAccount('idempotency', account)
  refuseUnless(app.initialConfig.http2 !== true, HTTP2_REFUSED)
  // Checked with no route at all: what is wrong for all of them is told before there is one.
  new Boundary(once, {}, 'idempotency', defaults)
  app.decorateRequest('idempotency', undefined)
  app.decorateRequest(BODY, undefined)
  app.addHook('onRoute', (route) => {
    const name = `${route.method} ${route.url}`
    const mark = takeMark(route, name)
    if (mark === null) return
    // Here, and not where the mark was made: now its route is known.
    refuseUnknown(`${name}: idempotent()`, mark, WITH_ACCOUNT)
    const { account: own = account, ...policy } = mark
    checkAccount(name, own)
    const boundary = new Boundary(once, policy, name, defaults)
    protect(route, boundary, new Guard(boundary, own, placeOf(route)))
  })
}

/** All but `operation`: that of one route would be the name of all. */
const { operation: _, ...PLUGIN } = { ...WITH_ACCOUNT, once: true as const }

/**
 * Fastify finds a route by its path and by its constraints: a host, a version, or others that an application has strategies for.
 * Two routes that differ in these alone are two operations.
 */
function placeOf({ url, constraints = {} }: RouteOptions): GuardedRoute {
  return { url, constraints: constraintsText(constraints), byHost: constraints.host !== undefined }
}

// As fastify-plugin does it: the hooks and the decoration are for the scope that registers, not for one of its own.
Object.assign(idempotency, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'onlyonce',
  [Symbol.for('plugin-meta')]: { name: 'onlyonce', fastify: '5.x' },
})

/** Takes the mark off a route, or gives null where there is none. Two that ask for different things are a mistake. */
function takeMark(route: RouteOptions, name: string): FastifyPolicy | null {
  const hooks: object[] = listOf(route.preHandler)
  const places = [...hooks, route.handler]
  const [mark, ...others] = places.filter((place) => marks.has(place))
  if (places.some((place) => HOOK in place && !marks.has(place))) {
    throw new OnlyonceError('layer_twice', {
      detail: `${name}: idempotent() is that of another version of the package.`,
    })
  }
  if (mark === undefined) return null
  if (others.some((other) => !isDeepStrictEqual(marks.get(other), marks.get(mark)))) {
    throw new OnlyonceError('layer_twice', { detail: `See ${name}.` })
  }
  route.preHandler = listOf(route.preHandler).filter((hook) => !marks.has(hook))
  return marks.get(mark)!
}

/** Each hook comes last of its kind: the key is claimed when no code is left that could refuse the request. */
function protect<Tx>(route: RouteOptions, { policy }: Boundary<Tx>, guard: Guard<Tx>): void {
  const { handler } = route
  const typed = handlers.get(handler)
  if (policy.durable !== null && typed === undefined) refuseHandler(`${route.method} ${route.url}`, handler)
  route.preParsing = [...listOf(route.preParsing), guard.tapBody]
  route.preHandler = [...listOf(route.preHandler), guard.claim]
  route.onError = [...listOf(route.onError), guard.noteError]
  const handle: RouteHandlerMethod = typed === undefined ? handler : guard.handlerOf(typed)
  route.handler = function protectedHandler(request: FastifyRequest, reply: FastifyReply) {
    return guard.watch(request, reply, () => handle.call(this, request, reply))
  }
}

function listOf<T extends object>(hooks: T | T[] | undefined): T[] {
  return hooks === undefined ? [] : Array.isArray(hooks) ? hooks : [hooks]
}

function refuseUnless(holds: boolean, detail: string): void {
  if (!holds) throw new OnlyonceError('setup_invalid', { detail })
}
