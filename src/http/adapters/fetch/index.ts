import type { Onlyonce } from '../../../onlyonce/door.ts'
import {
  Boundary,
  contextFor,
  followLayers,
  type HandlerRoute,
  type IdempotencyContext,
  type Keyless,
  type KeyOption,
  type Profile,
  type Protect,
  type RouteContext,
  type RoutePolicy,
  type Schema,
  unprotectedReply,
} from '../../index.ts'
import type { Durable, FitsOperation } from '../../operation-route.ts'
import { type Account, accountAndPolicy, accountOf, checkHandler, refuseHandler } from '../account.ts'
import { requireOperation } from '../place.ts'
import { bodyOf } from './body.ts'
import { responseOf } from './response.ts'
import { requestOf, serve } from './serve.ts'

export type { IdempotencyContext, RequestContext } from '../../index.ts'

/** What a handler is given beside what its framework gives: the context of its protection, and `tx` where it is in a transaction. */
export type ProtectedContext<
  Tx,
  P extends Protect,
  K extends KeyOption | undefined,
  F extends Profile | undefined,
  S extends Schema,
> = { readonly idempotency: RouteContext<Tx, P, K, F, S> } & ([P] extends ['transaction']
  ? { readonly tx: Tx | Keyless<K, F> }
  : unknown)

/** What a handler may say that it is given of ours has to be what it is given. */
type Fits<Ours, Context> =
  Ours extends Pick<Context, keyof Context & ('idempotency' | 'tx')>
    ? unknown
    : { readonly contextOfHandler: 'differs from what its route gives' }

/** The parameters of the path, where the framework has some. Next.js gives a promise of them. */
interface WithParams {
  // biome-ignore lint/suspicious/noExplicitAny: what a route's parameters are is said where the route is.
  readonly params?: any
}

export interface FetchOptions<Req, FromFramework> extends RoutePolicy {
  /** The name of what the handler does, such as `payments.create`. A handler is told the path, and no pattern of it. */
  readonly operation: NonNullable<RoutePolicy['operation']>
  /**
   * Whose request it is, after your own authentication; one without an account is refused with 401. Or the only account, where a
   * service has one tenant.
   */
  readonly account: Account<[request: Req, context: FromFramework]>
}

type Handler<Req, FromFramework> = (request: Req, context?: FromFramework) => Promise<Response>

/**
 * Protects any handler that makes a Response of a Request: a route of Next.js, a server of Bun or Deno. What the
 * framework gives as second argument is passed on, together with `idempotency`, and with `tx` where the route has
 * `protect: 'transaction'`. A durable operation answers by itself, and takes no handler.
 *
 * @example
 * export const POST = idempotent(once, { account, operation: 'orders.create', protect: 'transaction' }, async (request, { tx, params }) => {
 *   const { rows } = await tx.query('INSERT INTO orders …')
 *   return Response.json(rows[0], { status: 201 })
 * })
 */
export function idempotent<Tx, Req extends Request = Request, const O extends Durable = Durable>(
  once: Onlyonce<Tx>,
  options: FetchOptions<Req, WithParams> & FitsOperation<O>,
): Handler<Req, WithParams>
export function idempotent<
  Tx,
  Req extends Request = Request,
  P extends Protect = 'handler',
  K extends KeyOption | undefined = undefined,
  F extends Profile | undefined = undefined,
  S extends Schema = undefined,
  Context = WithParams & ProtectedContext<Tx, P, K, F, S>,
>(
  once: Onlyonce<Tx>,
  options: FetchOptions<Req, Omit<Context, 'idempotency' | 'tx'>> &
    HandlerRoute<P, K, F, S> &
    Fits<ProtectedContext<Tx, P, K, F, S>, Context>,
  handler: (request: Req, context: Context) => Response | Promise<Response>,
): Handler<Req, Omit<Context, 'idempotency' | 'tx'>>
export function idempotent<Tx>(
  once: Onlyonce<Tx>,
  options: FetchOptions<Request, object>,
  handler?: (request: Request, context: never) => Response | Promise<Response>,
): Handler<Request, object> {
  const { account, policy } = accountAndPolicy(LAYER, options)
  const boundary = new Boundary(once, requireOperation(policy, LAYER), LAYER)
  if (boundary.policy.durable !== null) refuseHandler(LAYER, handler)
  else checkHandler(LAYER, handler)
  followLayers()
  return async function idempotency(request, context = {}) {
    const run = async (idempotency: IdempotencyContext<Tx> | null): Promise<Response> => {
      if (handler === undefined) return responseOf(unprotectedReply(request.method, boundary.policy))
      return await handler(request, givenTo(context, idempotency, request.method, boundary) as never)
    }
    const url = new URL(request.url)
    const anonymous = {
      route: null,
      pathParams: {},
      account: null,
      body: () => bodyOf(request, boundary.bodySizeMaxBytes),
    }
    if (!boundary.protects(requestOf(request, url, anonymous))) return await run(null)
    const whose = await accountOf(account, request, context)
    const pathParams = await paramsOf(context)
    const known = { ...anonymous, pathParams, account: whose }
    return await serve(boundary, requestOf(request, url, known), run, () => request.signal)
  }
}

/** The second argument of the handler. */
function givenTo<Tx>(
  context: object,
  protection: IdempotencyContext<Tx> | null,
  method: string,
  { policy }: Boundary<Tx>,
): object {
  const idempotency = contextFor<IdempotencyContext<Tx> | null>(protection, method, policy)
  if (policy.protect !== 'transaction') return { ...context, idempotency }
  // Read when it is asked for: of a request that is not protected, asking for it is the error.
  return {
    ...context,
    idempotency,
    get tx() {
      return idempotency === null ? null : idempotency.tx
    },
  }
}

const LAYER = 'idempotent() for fetch'

/** The parameters of the path, where the framework gives them. */
async function paramsOf(context: object): Promise<Record<string, string>> {
  const given: unknown = 'params' in context ? await context.params : undefined
  const known = Object.entries(given ?? {}).filter(([, value]) => value !== undefined)
  // The rest of a path ([...slug]) is a list of its parts.
  return Object.fromEntries(
    known.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  )
}
