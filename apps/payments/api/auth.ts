import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { authenticator, bearerOf, type Caller } from '../accounts/index.ts'
import { Refused } from '../problems.ts'
import type { Service } from '../service.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before anything else under /v1. Ask `callerOf`. */
    caller: Caller | null
  }
}

/** Lets in whoever has an API key, before anything of the request is looked at. */
export function requireApiKey({
  pool,
}: Pick<Service, 'pool'>): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const authenticate = authenticator(pool)
  return async (request, reply) => {
    request.caller = await authenticate(request.headers.authorization)
    if (request.caller === null) refuseStranger(reply)
    // Of both: the line about the answer is written with that of the reply.
    request.log = request.log.child({ account: request.caller.account })
    reply.log = request.log
  }
}

/** Lets in whoever has the token of the operators; an account's key opens nothing here. */
export function requireOpsToken({
  ops_token,
}: Pick<Service, 'ops_token'>): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const expected = ops_token === null ? null : digest(ops_token)
  return async ({ headers }, reply) => {
    const token = bearerOf(headers.authorization)
    // Digests are of one length, so comparing them tells nothing of the token's, either.
    const equal = expected !== null && token !== null && timingSafeEqual(digest(token), expected)
    if (!equal) refuseStranger(reply)
  }
}

/** Who asks. For routes under /v1. */
export function callerOf({ caller }: FastifyRequest): Caller {
  if (caller === null) throw new Refused('unauthorized')
  return caller
}

/** Refuses to begin anything in a mode that has no processor, before a key is claimed: the same key may be sent when it has one. */
export function requireGateway({
  gateways,
}: Pick<Service, 'gateways'>): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    if (request.method === 'POST' && gateways[callerOf(request).mode] === undefined) {
      throw new Refused('mode_unavailable')
    }
  }
}

function refuseStranger(reply: FastifyReply): never {
  reply.header('www-authenticate', 'Bearer')
  throw new Refused('unauthorized')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
