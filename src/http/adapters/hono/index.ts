import type { Context, Env, MiddlewareHandler } from 'hono'
import type { Onlyonce } from '../../../onlyonce/door.ts'
import {
  type Asks,
  Boundary,
  followLayers,
  type GivenContext,
  type IdempotencyContext,
  type Keyless,
  type KeyOption,
  type Profile,
  type Protect,
  type RoutePolicy,
  type Schema,
} from '../../index.ts'
import type { FitsOperation, Named } from '../../operation-route.ts'
import { type Account, accountAndPolicy, accountOf } from '../account.ts'
import { responseOf } from '../fetch/response.ts'
import { requestOf, serve } from '../fetch/serve.ts'
import { PatternsSeen } from '../patterns-seen.ts'
import { passOn, saysWhatBecomes } from '../said.ts'
import { bodyOf } from './body.ts'
import { lateResponse } from './late.ts'
import { routeOf } from './route.ts'

export type { IdempotencyContext, RequestContext } from '../../index.ts'

/**
 * What `c.get('idempotency')` gives in an application that has the middleware before all its routes, by `app.use`; undefined for a
 * request that is not protected.
 *
 * @example
 * const app = new Hono<{ Variables: IdempotencyVariables<PostgresTx> }>()
 */
export interface IdempotencyVariables<Tx> {
  idempotency: IdempotencyContext<Tx> | undefined
}

/** What `c.var.idempotency` is behind the middleware of a route, by what the route asks for. */
interface RouteVariables<
  Tx,
  P extends Protect,
  K extends KeyOption | undefined,
  F extends Profile | undefined,
  S extends Schema,
> {
  idempotency: GivenContext<Tx, P, S> | ([Keyless<K, F>] extends [never] ? never : undefined)
}

export interface HonoOptions<E extends Env> extends RoutePolicy {
  /**
   * Whose request it is, after your own authentication; one without an account is refused with 401. Or the only account, where a
   * service has one tenant.
   */
  readonly account: Account<[c: Context<E>]>
}

/**
 * Protects a route of Hono, or, by `app.use`, all routes below a path. Its handler finds the context in `c.var.idempotency`, with its
 * type.
 *
 * @example
 * app.post('/orders', idempotent(once, { account: (c) => c.get('user').account }), createOrder)
 * app.post('/transfers', idempotent(once, { account, protect: 'transaction' }), async (c) => {
 *   const { rows } = await c.var.idempotency.tx.query('INSERT INTO transfers …')
 *   return c.json(rows[0], 201)
 * })
 */
export function idempotent<
  Tx,
  // biome-ignore lint/suspicious/noExplicitAny: what variables an application has is its own to say.
  E extends Env = any,
  const O extends Named = Named,
  P extends Protect = 'handler',
  K extends KeyOption | undefined = undefined,
  F extends Profile | undefined = undefined,
  S extends Schema = undefined,
>(
  once: Onlyonce<Tx>,
  options: HonoOptions<E> & FitsOperation<O> & Asks<P, K, F, S>,
): MiddlewareHandler<{ Variables: RouteVariables<Tx, P, K, F, S> }> {
  const { account, policy } = accountAndPolicy(LAYER, options)
  const boundary = new Boundary(once, policy, LAYER)
  const seen = new PatternsSeen()
  followLayers()
  return async function idempotency(c, next) {
    const { bodySizeMaxBytes } = boundary
    const url = new URL(c.req.url)
    const anonymous = {
      route: '',
      pathParams: {},
      account: null,
      body: () => bodyOf(c.req, bodySizeMaxBytes),
    }
    if (!boundary.protects(requestOf(c.req.raw, url, anonymous))) return await next()
    const whose = await accountOf(account, c as unknown as Context<E>)
    // The request itself may be replaced by what stands between two layers.
    const carriers = [c, c.req.raw]
    // A stranger, who is refused, must not be the one by whom a second pattern is met.
    const place = routeOf(c, whose === null ? new PatternsSeen() : seen)
    const request = { ...requestOf(c.req.raw, url, { ...anonymous, ...place, account: whose }), carriers }
    // Headers that were set before the handler runs belong to this request, with every answer.
    const before = new Headers(c.newResponse(null).headers)
    let answered: Error | null = null
    let isRunning = false
    const handle = async (context: IdempotencyContext<Tx> | null): Promise<Response> => {
      if (context !== null) c.set('idempotency', context as never)
      isRunning = true
      const error = await runAndCatch(c, next).finally(() => {
        isRunning = false
      })
      if (error === null) return c.res
      if (isReply(boundary, error)) {
        passOn(context, error)
        return c.res
      }
      answered = error
      throw error
    }
    try {
      const response = await serve(
        boundary,
        request,
        handle,
        () => c.req.raw.signal,
        (reply) => responseOf(reply, before),
      )
      // Twice, because a response that follows another one takes over the headers of the first.
      c.res = undefined
      c.res = isRunning ? lateResponse(c, response) : response
    } catch (error) {
      // What Hono has made of it is in place already, and the record knows.
      if (answered === null || error !== answered) throw error
    }
  }
}

const LAYER = 'idempotent() for Hono'

/** Hono catches what a handler throws, answers it by `onError`, and leaves it in `c.error`. */
async function runAndCatch(c: Context, next: () => Promise<void>): Promise<Error | null> {
  const before = c.error
  await next()
  if (!c.finalized) throw new TypeError('The handler returned no response.')
  return c.error === undefined || c.error === before ? null : c.error
}

/**
 * Whether what was answered to an error stands as a reply. An HTTPException is how a handler answers in Hono; but a
 * transaction that fails is rolled back, and work that says that it did nothing, or that the request is wrong, is taken at its word.
 */
function isReply<Tx>({ policy }: Boundary<Tx>, error: Error): boolean {
  return policy.protect === 'handler' && !saysWhatBecomes(error)
}
