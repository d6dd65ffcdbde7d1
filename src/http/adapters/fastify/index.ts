import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { acrossCopies } from '../../../core/copies.ts'
import { OnlyonceError } from '../../../core/errors.ts'
import { refuseUnknown } from '../../../core/options.ts'
import type { Onlyonce } from '../../../onlyonce/door.ts'
import { Boundary, type IdempotencyContext, type RoutePolicy } from '../../index.ts'
import { checkAccount, WITH_ACCOUNT } from '../account.ts'
import { HTTP2_REFUSED } from '../node/serve.ts'
import { constraintsText } from '../place.ts'
import { BODY, Guard, type GuardedRoute } from './guard.ts'

export type { IdempotencyContext } from '../../index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while a request is protected. Say which `tx` your store has: `IdempotencyContext<PostgresTx>`. */
    // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
    idempotency?: IdempotencyContext<any>
  }
}

type Account = (request: FastifyRequest) => string | null | undefined | Promise<string | null | undefined>

/** What a route may ask for: a policy, and an account that is found in another way than elsewhere. */
export interface FastifyPolicy extends RoutePolicy {
  readonly account?: Account
}

/** What the plugin is given. A policy here is that of all its routes, each of which may differ from it. */
export interface FastifyOptions<Tx> extends Omit<RoutePolicy, 'operation'> {
  readonly once: Onlyonce<Tx>
  /** Whose request it is, after your own authentication; one without an account is refused with 401. */
  readonly account: Account
}

/** Stands among the hooks of a route before its handler. */
// biome-ignore lint/suspicious/noExplicitAny: a hook fits routes of every type, and looks at none of their parts.
export type IdempotentHook = (request: any, reply: any, done: (error?: Error) => void) => void

/** The hooks that mark a route, and what each asks for. */
const marks = acrossCopies('fastify_marks', () => new WeakMap<object, FastifyPolicy>())
/** Known to all copies of the package in a process. */
const HOOK = Symbol.for('onlyonce.hook')

/**
 * Protects a route of Fastify 5. Wherever it stands among the hooks, the key is claimed after all of them: what they
 * refuse claims nothing.
 *
 * @example
 * app.post('/orders', { preHandler: idempotent() }, createOrder)
 */
export function idempotent(policy: FastifyPolicy = {}): IdempotentHook {
  // The plugin puts its own hooks in the place of this one. Where it has not seen the route, nothing runs. A mark in
  // `config` was dropped for this: a route that was added before the plugin was loaded ran unprotected.
  const unseen: IdempotentHook = (request: FastifyRequest, _reply, done) => {
    const route = `${request.method} ${request.routeOptions.url}`
    done(new OnlyonceError('setup_invalid', { detail: `${route}: ${TOO_EARLY}` }))
  }
  marks.set(unseen, policy)
  return Object.assign(unseen, { [HOOK]: true })
}

const TOO_EARLY =
  'idempotent() is a preHandler of routes that are added after `await app.register(idempotency, { once, account })`.'

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
    protect(route, new Guard(boundary, own, placeOf(route)))
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
  const hooks = listOf(route.preHandler)
  const found = hooks.filter((hook) => marks.has(hook))
  const mark = found[0]
  if (hooks.some((hook) => HOOK in hook && !marks.has(hook))) {
    throw new OnlyonceError('layer_twice', {
      detail: `${name}: idempotent() is that of another version of the package.`,
    })
  }
  if (mark === undefined) return null
  if (found.some((other) => !isDeepStrictEqual(marks.get(other), marks.get(mark)))) {
    throw new OnlyonceError('layer_twice', { detail: `See ${name}.` })
  }
  route.preHandler = hooks.filter((hook) => !marks.has(hook))
  return marks.get(mark)!
}

/** Each hook comes last of its kind: the key is claimed when no code is left that could refuse the request. */
function protect<Tx>(route: RouteOptions, guard: Guard<Tx>): void {
  const { handler } = route
  route.preParsing = [...listOf(route.preParsing), guard.tapBody]
  route.preHandler = [...listOf(route.preHandler), guard.claim]
  route.onError = [...listOf(route.onError), guard.noteError]
  route.handler = function protectedHandler(request: FastifyRequest, reply: FastifyReply) {
    return guard.watch(request, reply, () => handler.call(this, request, reply))
  }
}

function listOf<T extends object>(hooks: T | T[] | undefined): T[] {
  return hooks === undefined ? [] : Array.isArray(hooks) ? hooks : [hooks]
}

function refuseUnless(holds: boolean, detail: string): void {
  if (!holds) throw new OnlyonceError('setup_invalid', { detail })
}
