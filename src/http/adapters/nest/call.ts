import type { ServerResponse } from 'node:http'
import { HttpException } from '@nestjs/common'
import { isObservable, lastValueFrom } from 'rxjs'
import { OnlyonceError } from '../../../core/errors.ts'
import { type Answer, type Boundary, type IdempotencyContext, unprotectedReply } from '../../index.ts'
import { type Account, accountOf } from '../account.ts'
import { sendReply } from '../node/capture.ts'
import { serve } from '../node/serve.ts'
import type { PatternsSeen } from '../patterns-seen.ts'
import { passOn } from '../said.ts'
import {
  headersBefore,
  type NestBound,
  type NestRequest,
  type NestResponse,
  rawOf,
  readRequest,
  silence,
} from './platform.ts'

/** Whose request it is. Express and Fastify have requests of their own, and yours may have a user on it. */
// biome-ignore lint/suspicious/noExplicitAny: the platform decides what a request is.
export type NestAccount = Account<[request: any]>

/** What is the same for all requests of a route. */
export interface NestRoute<Tx> {
  readonly bound: NestBound
  readonly boundary: Boundary<Tx>
  readonly account: NestAccount
  /** For what is not in the lists of the decorators: versions in the path, and modules at several places. */
  readonly seen: PatternsSeen
  /** The names of what `@Header` sets, in lower case. */
  readonly headers: readonly string[]
}

/** The handler itself: what it returns is what Nest makes the response of. */
export type NestHandler<Tx> = (context: IdempotencyContext<Tx> | null) => unknown

/** One request to a protected route, from the interceptor to the handler. */
export class ProtectedCall<Tx> {
  readonly #route: NestRoute<Tx>
  readonly #request: NestRequest
  readonly #response: NestResponse
  #context: IdempotencyContext<Tx> | null = null

  constructor(route: NestRoute<Tx>, request: NestRequest, response: NestResponse) {
    this.#route = route
    this.#request = request
    this.#response = response
  }

  /** In place of the handler: what Nest is to make a response of. */
  run(handler: NestHandler<Tx>): unknown {
    const { boundary } = this.#route
    const read = readRequest(this.#request, null, boundary)
    if (!boundary.protects(read)) {
      if (boundary.policy.durable !== null) return this.#refuse(read.method)
      return handler(null)
    }
    return new Promise((resolve, reject) => {
      let entered = false
      const next = (context: IdempotencyContext<Tx> | null) => {
        entered = true
        this.#context = context
        if (context !== null) Object.assign(this.#request, { idempotency: context })
        resultOf(handler, context).then(resolve, reject)
      }
      this.#serve(next).then((answer) => {
        // A handler whose time was over may still run, and Nest goes on with it when it ends: its reply is for the record.
        if (entered) return
        if (answer === 'reply') silence(this.#response)
        resolve(undefined)
      }, reject)
    })
  }

  /**
   * Tells what an exception means, before the filters answer it: for a transaction a throw is a rollback, with any status
   * it has, and `notExecuted()` and `invalid()` say what they say. Gives the exception that goes on to them.
   */
  failed(error: unknown): unknown {
    passOn(this.#context, error, rawOf<ServerResponse>(this.#response).writableEnded)
    return error instanceof OnlyonceError ? httpException(error) : error
  }

  /** The method of a durable operation is empty: what Nest would make of it says that something was done. */
  #refuse(method: string): void {
    const response = rawOf<ServerResponse>(this.#response)
    const { policy } = this.#route.boundary
    sendReply(response, headersBefore(this.#response, this.#route.headers), unprotectedReply(method, policy))
    silence(this.#response)
  }

  async #serve(next: (context: IdempotencyContext<Tx> | null) => void): Promise<Answer['answer']> {
    const { boundary, account, headers, bound, seen } = this.#route
    const whose = await accountOf(account, this.#request)
    const read = readRequest(this.#request, whose, boundary, bound)
    const { route } = read
    const request =
      route === null || whose === null ? read : { ...read, patterns: seen.add(this.#route, route) }
    const before = () => headersBefore(this.#response, headers)
    return await serve(boundary, request, rawOf(this.#response), next, before)
  }
}

/**
 * An Observable is run to its end here. Nest would stop one whose client has hung up and answer nothing; the work of a
 * protected request goes on, and its reply is stored.
 */
async function resultOf<Tx>(
  handler: NestHandler<Tx>,
  context: IdempotencyContext<Tx> | null,
): Promise<unknown> {
  const result = await handler(context)
  return isObservable(result) ? await lastValueFrom(result) : result
}

/** Nest's own filter knows the status of its own exceptions only. */
function httpException(error: OnlyonceError): HttpException {
  const { status, code, message, retryable } = error
  return new HttpException({ statusCode: status, code, message, retryable }, status, { cause: error })
}
