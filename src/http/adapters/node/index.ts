import type { IncomingMessage, ServerResponse } from 'node:http'
import { memberOf } from '../../../core/thrown.ts'
import type { Onlyonce } from '../../../onlyonce/door.ts'
import { Boundary, type IdempotencyContext, type RoutePolicy } from '../../index.ts'
import type { FitsOperation, Named } from '../../operation-route.ts'
import { accountAndPolicy, accountOf } from '../account.ts'
import { requireOperation } from '../place.ts'
import { passOn } from '../said.ts'
import { NO_PATTERN, requestOf, serve } from './serve.ts'

export type { IdempotencyContext } from '../../index.ts'
export { keepRawBody } from './body.ts'

export interface NodeOptions extends RoutePolicy {
  /** The name of what the handler does, such as `payments.create`. node:http has no routes that could name it. */
  readonly operation: NonNullable<RoutePolicy['operation']>
  /** Whose request it is, after your own authentication; one without an account is refused with 401. */
  readonly account: (
    request: IncomingMessage,
  ) => string | null | undefined | Promise<string | null | undefined>
}

/** A handler that is given the context of its protection, or null for a request that is not protected. */
export type ProtectedHandler<Tx> = (
  request: IncomingMessage,
  response: ServerResponse,
  idempotency: IdempotencyContext<Tx> | null,
) => void | Promise<void>

/**
 * Protects a handler of node:http.
 *
 * @example
 * createServer(idempotent(once, { account: accountOf, operation: 'orders.create' }, async (request, response) => {
 *   response.end('done')
 * }))
 */
export function idempotent<Tx, const O extends Named = Named>(
  once: Onlyonce<Tx>,
  options: NodeOptions & FitsOperation<O>,
  handler: ProtectedHandler<Tx>,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { account, policy } = accountAndPolicy(LAYER, options)
  const boundary = new Boundary(once, requireOperation(policy, LAYER), LAYER)
  return function idempotency(request, response) {
    const fail = (error: unknown) => endWithError(response, error)
    const run = (context: IdempotencyContext<Tx> | null) => {
      Promise.resolve()
        .then(() => handler(request, response, context))
        .catch((error) => {
          passOn(context, error, response.writableEnded)
          fail(error)
        })
    }
    const url = request.url ?? '/'
    if (
      !boundary.protects(requestOf(request, url, { ...NO_PATTERN, account: null }, boundary.bodySizeMaxBytes))
    )
      return run(null)
    accountOf(account, request)
      .then((whose) =>
        serve(
          boundary,
          requestOf(request, url, { ...NO_PATTERN, account: whose }, boundary.bodySizeMaxBytes),
          response,
          run,
        ),
      )
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
