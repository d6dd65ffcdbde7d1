import type { IncomingMessage, ServerResponse } from 'node:http'
import { Boundary, type OnceContext, type RoutePolicy } from '../../boundary/index.ts'
import type { Onlyonce } from '../../door.ts'
import { accountOf } from '../account.ts'
import { requestOf, serve, splitUrl } from '../node/serve.ts'

export { keepRawBody } from '../node/body.ts'

declare global {
  namespace Express {
    interface Request {
      /**
       * Set while a request is protected. Say which `tx` your store has: `OnceContext<PostgresTx>`. Not `once`: a request is
       * an emitter of events, and `pipe` calls its `once`.
       */
      // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
      onlyonce?: OnceContext<any>
    }
  }
}

/** What Express adds to Node's request, as far as it is needed here; version 4 and 5 agree on it. */
export interface ExpressRequest extends IncomingMessage {
  readonly originalUrl: string
  readonly baseUrl: string
  // biome-ignore lint/suspicious/noExplicitAny: Express types routes and parameters differently in each version.
  readonly route?: any
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  readonly params: any
}

export interface ExpressOptions<Req> extends RoutePolicy {
  /** Whose request it is, after your own authentication; nobody's is refused with 401. */
  readonly account: (request: Req) => string | null | undefined | Promise<string | null | undefined>
}

/**
 * Protects a route of Express 4 or 5.
 *
 * @example
 * app.post('/orders', idempotent(once, { account: (req) => req.user.account }), createOrder)
 */
export function idempotent<Tx, Req extends ExpressRequest = ExpressRequest>(
  once: Onlyonce<Tx>,
  options: ExpressOptions<Req>,
): (request: Req, response: ServerResponse, next: (error?: unknown) => void) => void {
  const { account, ...policy } = options
  const boundary = new Boundary(once, policy, policy.operation ?? 'idempotent() for Express')
  return function idempotency(request, response, next) {
    if (!boundary.protects(requestOf(request, request.originalUrl, NOBODY))) return next()
    accountOf(account, request)
      .then((whose) => {
        const known = { route: routeOf(request), path_params: request.params ?? {}, account: whose }
        return serve(boundary, requestOf(request, request.originalUrl, known), response, (context) => {
          if (context !== null) Object.assign(request, { onlyonce: context })
          next()
        })
      })
      .catch(next)
  }
}

const NOBODY = { route: '', path_params: {}, account: null }

/** The pattern that the request matched, below whatever the router is mounted at; else the path itself. */
function routeOf({ route, baseUrl, originalUrl }: ExpressRequest): string {
  const pattern: unknown = route?.path
  return typeof pattern === 'string' ? `${baseUrl}${pattern}` : splitUrl(originalUrl).path
}
