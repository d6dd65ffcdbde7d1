import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Authenticator, bearerOf, type Caller } from '../accounts/index.ts'
import { Refused } from '../problems.ts'
import type { Service } from '../service.ts'
import type { Strangers } from './strangers.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before anything else under /v1. Ask `callerOf`. */
    caller: Caller | null
    /** Not yet counted against the rate of its account: it may be a replay, and those are not. */
    uncounted: boolean
  }
}

export type Door = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/**
 * Lets in requests with an API key, before anything else of them is looked at. A key that this process has not seen open anything costs
 * its address a try before the database is asked, and gives the try back where it is good.
 */
export function requireApiKey({ authenticate, recognises }: Authenticator, strangers: Strangers): Door {
  return async (request, reply) => {
    const { authorization } = request.headers
    const giveBack = recognises(authorization) ? null : strangers.take(request)
    request.caller = await authenticate(authorization)
    if (request.caller === null) refuseStranger(reply)
    giveBack?.()
    // Of both: the line about the answer is written with that of the reply.
    request.log = request.log.child({ account: request.caller.account })
    reply.log = request.log
  }
}

/** Lets in requests with the token of the operators; an account's key opens nothing here. */
export function requireOpsToken({ opsToken }: Pick<Service, 'opsToken'>, strangers: Strangers): Door {
  const expected = opsToken === null ? null : digest(opsToken)
  return async (request, reply) => {
    const token = bearerOf(request.headers.authorization)
    // Digests are of one length, so comparing them tells nothing of the token's, either.
    const equal = expected !== null && token !== null && timingSafeEqual(digest(token), expected)
    if (equal) return
    strangers.take(request)
    refuseStranger(reply)
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
