import type { KoaContext } from './index.ts'

/** What Koa has on a context, beside what it documents for its users. */
interface Kept {
  onerror(error: unknown): void
  readonly app: { emit(event: 'error', error: unknown, ctx: unknown): unknown }
}

/**
 * Keeps a handler of Koa apart from the end of its connection.
 *
 * - `ctx.writable` asks the socket, and Koa sends nothing to a client that is gone: the reply would be empty in the record too.
 * - Koa destroys a stream in `ctx.body` when the response is over, by one list of listeners (`on-finished`) that was begun before the
 *   layer. The handler begins a list of its own, which hears what the handler is to hear.
 * - An error of the connection would be answered with 500, in place of the handler. It is told to the application, as ever.
 */
export function standApart(ctx: KoaContext): void {
  const { req, res, response } = ctx
  Object.assign(res, { __onFinished: undefined })
  Object.defineProperty(response, 'writable', { get: () => !res.writableEnded, configurable: true })
  const kept = ctx as unknown as Kept
  const { onerror } = kept
  kept.onerror = (error) => {
    const ofConnection = error !== null && error !== undefined && error === req.socket?.errored
    if (ofConnection) kept.app.emit('error', error, ctx)
    else Reflect.apply(onerror, ctx, [error])
  }
}
