import type { Onlyonce } from '../../../onlyonce/door.ts'
import { Boundary, followLayers, type IdempotencyContext, type RoutePolicy } from '../../index.ts'
import type { FitsOperation, Named } from '../../operation-route.ts'
import { accountAndPolicy, accountOf } from '../account.ts'
import { requireOperation } from '../place.ts'
import { bodyOf } from './body.ts'
import { requestOf, serve } from './serve.ts'

export type { IdempotencyContext } from '../../index.ts'

/** What a handler is given beside the request: what its framework gives, and the context of its protection. */
export interface ProtectedContext<Tx> {
  /** Null for a request that is not protected. */
  readonly idempotency: IdempotencyContext<Tx> | null
  /** The parameters of the path, where the framework has some. Next.js gives a promise of them. */
  // biome-ignore lint/suspicious/noExplicitAny: what a route's parameters are is said where the route is.
  readonly params?: any
}

export interface FetchOptions<Req, Given> extends RoutePolicy {
  /** The name of what the handler does, such as `payments.create`. A handler is told the path, and no pattern of it. */
  readonly operation: NonNullable<RoutePolicy['operation']>
  /** Whose request it is, after your own authentication; one without an account is refused with 401. */
  readonly account: (
    request: Req,
    context: Given,
  ) => string | null | undefined | Promise<string | null | undefined>
}

/**
 * Protects any handler that makes a Response of a Request: a route of Next.js, a server of Bun or Deno. What the
 * framework gives as second argument is passed on, together with `once`.
 *
 * @example
 * export const POST = idempotent(once, { account, operation: 'payments.create' }, async (request, { once, params }) => {
 *   const { id } = await params
 *   return Response.json({ id }, { status: 201 })
 * })
 */
export function idempotent<
  Tx,
  Req extends Request = Request,
  Context extends Pick<ProtectedContext<Tx>, 'idempotency'> = ProtectedContext<Tx>,
  const O extends Named = Named,
>(
  once: Onlyonce<Tx>,
  options: FetchOptions<Req, Omit<Context, 'idempotency'>> & FitsOperation<O>,
  handler: (request: Req, context: Context) => Response | Promise<Response>,
): (request: Req, context?: Omit<Context, 'idempotency'>) => Promise<Response> {
  const { account, policy } = accountAndPolicy(LAYER, options)
  const boundary = new Boundary(once, requireOperation(policy, LAYER), LAYER)
  followLayers()
  return async function idempotency(request, given) {
    const context = (given ?? {}) as Omit<Context, 'idempotency'>
    const run = async (idempotency: IdempotencyContext<Tx> | null) =>
      await handler(request, { ...context, idempotency } as unknown as Context)
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
