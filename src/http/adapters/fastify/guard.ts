import type { Readable } from 'node:stream'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RequestPayload,
  RouteHandlerMethod,
} from 'fastify'
import {
  type Boundary,
  type BoundaryRequest,
  contextFor,
  type IdempotencyContext,
  type RequestBody,
  unprotectedReply,
} from '../../index.ts'
import type { Account } from '../account.ts'
import { headerOf, serve, splitUrl } from '../node/serve.ts'
import { errorFor, passOn } from '../said.ts'
import { TappedBody } from './tapped-body.ts'

type Done = (error?: Error) => void

/** A handler that is given its context. */
export type TypedHandler = (
  this: FastifyInstance,
  request: FastifyRequest,
  reply: FastifyReply,
  context: never,
) => unknown

/** On the request itself: a WeakMap over all requests was seen in profiles of the garbage collector. */
export const BODY = Symbol('the body of a protected request')
type Tapped = FastifyRequest & { [BODY]?: TappedBody }

/** What the layer knows of a route when it is added. */
export interface GuardedRoute {
  readonly url: string
  /** As a part of the operation's name. */
  readonly constraints: string
  /** Whether a host is among them. */
  readonly byHost: boolean
}

/** What stands around the handler of one protected route: a hook for each moment at which something is to be done. */
export class Guard<Tx> {
  readonly #boundary: Boundary<Tx>
  readonly #account: Account<[request: FastifyRequest]>
  readonly #route: GuardedRoute

  constructor(boundary: Boundary<Tx>, account: Account<[request: FastifyRequest]>, route: GuardedRoute) {
    this.#boundary = boundary
    this.#account = account
    this.#route = route
  }

  /** Before the parser: the fingerprint is over the bytes, and the parser leaves none. */
  readonly tapBody = (
    request: FastifyRequest,
    _reply: FastifyReply,
    payload: RequestPayload,
    done: (error: null, payload: RequestPayload) => void,
  ): void => {
    // A hook that unpacks may take the length out of the headers: its stream says that there is a body.
    const decoded = (payload as unknown) !== request.raw
    if ((decoded || hasBody(request)) && this.#isProtected(request)) {
      const { bodySizeMaxBytes } = this.#boundary
      ;(request as Tapped)[BODY] = new TappedBody(payload as Readable, bodySizeMaxBytes, decoded)
    }
    done(null, payload)
  }

  /** After everything that could refuse the request, and before the handler. */
  readonly claim = (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    if (!this.#isProtected(request)) {
      done()
      return
    }
    const run = (context: IdempotencyContext<Tx> | null) => {
      if (context !== null) request.idempotency = context
      done()
    }
    const fail = (error: unknown) => {
      // A handler that took the response over, and destroyed it, leaves no code to answer for it.
      if (reply.sent) reply.raw.destroy()
      else done(errorFor(error) as Error)
    }
    const serveFor = (whose: string | null | undefined) =>
      // Headers that were set before are with the reply, not yet with Node's response.
      serve(this.#boundary, this.#read(request, whose ?? null), reply.raw, run, () => reply.getHeaders())
    try {
      const account = this.#account
      const whose = typeof account === 'string' ? account : account(request)
      const served = isPromise(whose) ? Promise.resolve(whose).then(serveFor) : serveFor(whose)
      if (served instanceof Promise) served.catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  /**
   * What is thrown is answered by the framework, and the answer is what counts; but for a transaction a throw is a rollback,
   * with any status that its error is given, and `notExecuted()` and `invalid()` say what they say.
   */
  readonly noteError = (
    request: FastifyRequest,
    _reply: FastifyReply,
    error: Error,
    done: () => void,
  ): void => {
    passOn(request.idempotency, error)
    done()
  }

  /**
   * Fastify does not answer a handler that returns nothing once the client has hung up. Its record needs an answer all the
   * same, or the key would stay in progress. And Fastify calls no `onError` for what is thrown behind a reply.
   *
   * A reply may also be under way: an asynchronous `onSend` hook works on it. Fastify then takes the handler for one that has not replied, and sends the
   * body of the reply with the status of the error. Here the reply stands, as everywhere behind a reply.
   */
  watch(request: FastifyRequest, reply: FastifyReply, handle: () => unknown): unknown {
    if (request.idempotency === undefined) return handle()
    const sending = noteSending(reply)
    /** Gives what Fastify is to wait for in place of the error; throws what Fastify has to answer. */
    const late = (error: unknown): unknown => {
      if (reply.sent || sending.begun) passOn(request.idempotency, error, true)
      if (reply.sent || !sending.begun) throw error
      request.log.error({ err: error }, 'The handler threw behind its reply.')
      return reply
    }
    let result: unknown
    try {
      result = handle()
    } catch (error) {
      return late(error)
    }
    if (!isPromise(result)) return result
    const answerSilent = (value: unknown) => {
      const silent = value === undefined && !reply.sent && !reply.raw.headersSent
      if (silent && (request.raw.destroyed || request.socket.destroyed)) reply.send()
      return value
    }
    return Promise.resolve(result).then(answerSilent, late)
  }

  /** The handler of the route, given its context. A durable operation has none: what is not protected is refused there. */
  handlerOf(typed: TypedHandler | null): RouteHandlerMethod {
    const { policy } = this.#boundary
    if (typed === null)
      return async (request, reply) => {
        const { status, headers, body } = unprotectedReply(request.method, policy)
        return await reply.code(status).headers(Object.fromEntries(headers)).send(body)
      }
    return function handler(request, reply) {
      return typed.call(this, request, reply, contextFor<never>(request.idempotency, request.method, policy))
    }
  }

  #isProtected({ method, raw }: FastifyRequest): boolean {
    return this.#boundary.protects({ method, header: (name) => headerOf(raw, name) })
  }

  #read(request: FastifyRequest, account: string | null): BoundaryRequest {
    const { raw } = request
    // `rewriteUrl` changes the other one: two paths may be one after it.
    const { path, query } = splitUrl(request.originalUrl)
    return {
      method: request.method,
      route: this.#route.url,
      constraints: this.#route.constraints,
      host: this.#route.byHost ? raw.headers.host : undefined,
      path,
      pathParams: request.params as Record<string, string>,
      query,
      account,
      carriers: [raw],
      header: (name) => headerOf(raw, name),
      body: () => this.#bodyOf(request),
    }
  }

  #bodyOf(request: FastifyRequest): RequestBody | Promise<RequestBody> {
    return (request as Tapped)[BODY]?.read(request.raw, request.body) ?? NO_BODY
  }
}

/** Whether the handler has sent its reply. `reply.sent` says so only when the response is written. */
function noteSending(reply: FastifyReply): { begun: boolean } {
  const sending = { begun: false }
  const { send } = reply
  reply.send = (payload?: unknown) => {
    sending.begun = true
    return send.call(reply, payload)
  }
  return sending
}

const NO_BODY: RequestBody = { kind: 'raw', bytes: Buffer.alloc(0) }

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
