import type { IncomingMessage, ServerResponse } from 'node:http'
import { memberOf } from '../../../core/thrown.ts'
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
  unprotectedReply,
} from '../../index.ts'
import type { Durable, FitsOperation } from '../../operation-route.ts'
import { type Account, accountAndPolicy, accountOf, checkHandler, refuseHandler } from '../account.ts'
import { requireOperation } from '../place.ts'
import { passOn } from '../said.ts'
import { type Headers, sendReply } from './capture.ts'
import { NO_PATTERN, requestOf, serve } from './serve.ts'

export type { IdempotencyContext, RequestContext } from '../../index.ts'
export { keepRawBody } from './body.ts'

/** A request with its context, where it is protected. */
export interface NodeRequest extends IncomingMessage {
  // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
  readonly idempotency?: IdempotencyContext<any> | undefined
}

export interface NodeOptions<Req> extends RoutePolicy {
  /** The name of what the handler does, such as `payments.create`. node:http has no routes that could name it. */
  readonly operation: NonNullable<RoutePolicy['operation']>
  /**
   * Whose request it is, after your own authentication; one without an account is refused with 401. Or the only account, where a
   * service has one tenant.
   */
  readonly account: Account<[request: Req]>
}

type Listener<Req> = (request: Req, response: ServerResponse) => void

/**
 * Protects a handler of node:http, which is given the context of its protection; it is also `request.idempotency`. A durable
 * operation answers by itself, and takes no handler.
 *
 * @example
 * createServer(idempotent(once, { account, operation: 'transfers.create', protect: 'transaction' }, async (request, response, { tx }) => {
 *   await tx.query('INSERT INTO transfers …')
 *   response.end('done')
 * }))
 */
export function idempotent<Tx, Req extends NodeRequest, const O extends Durable>(
  once: Onlyonce<Tx>,
  options: NodeOptions<Req> & FitsOperation<O>,
): Listener<Req>
export function idempotent<
  Tx,
  Req extends NodeRequest = NodeRequest,
  P extends Protect = 'handler',
  K extends KeyOption | undefined = undefined,
  F extends Profile | undefined = undefined,
  S extends Schema = undefined,
>(
  once: Onlyonce<Tx>,
  options: NodeOptions<Req> & HandlerRoute<P, K, F, S>,
  handler: (request: Req, response: ServerResponse, context: RouteContext<Tx, P, K, F, S>) => unknown,
): Listener<Req>
export function idempotent<Tx>(
  once: Onlyonce<Tx>,
  options: NodeOptions<NodeRequest>,
  handler?: (request: NodeRequest, response: ServerResponse, context: never) => unknown,
): Listener<NodeRequest> {
  const { account, policy } = accountAndPolicy(LAYER, options)
  const boundary = new Boundary(once, requireOperation(policy, LAYER), LAYER)
  if (boundary.policy.durable !== null) refuseHandler(LAYER, handler)
  else checkHandler(LAYER, handler)
  return function idempotency(request, response) {
    const fail = (error: unknown) => endWithError(response, error)
    const { method = '', url = '/' } = request
    const run = (context: IdempotencyContext<Tx> | null) => {
      if (handler === undefined) {
        sendReply(response, response.getHeaders() as Headers, unprotectedReply(method, boundary.policy))
        return
      }
      if (context !== null) Object.assign(request, { idempotency: context })
      const given = contextFor<never>(context, method, boundary.policy)
      const handle = async () => await handler(request, response, given)
      handle().catch((error) => {
        passOn(context, error, response.writableEnded)
        fail(error)
      })
    }
    const known = (whose: string | null) =>
      requestOf(request, url, { ...NO_PATTERN, account: whose }, boundary.bodySizeMaxBytes)
    if (!boundary.protects(known(null))) return run(null)
    accountOf(account, request)
      .then((whose) => serve(boundary, known(whose), response, run))
      .catch(fail)
  }
}

const LAYER = 'idempotent() for node:http'

/** Node has no error handling of its own for this: a handler that throws has answered 500. */
function endWithError(response: ServerResponse, error: unknown): void {
  const status = memberOf(error, 'status')
  // The reply of a handler that throws behind it is whole, and leaves or does not: that is decided elsewhere.
  if (response.writableEnded) return
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.statusCode = typeof status === 'number' && status >= 400 && status < 600 ? status : 500
  response.setHeader('content-type', 'text/plain; charset=utf-8')
  response.end(response.statusCode === 500 ? 'Internal Server Error' : 'Error')
}
