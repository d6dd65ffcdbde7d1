import type { FastifyRequest } from 'fastify'
import { parseKeyHeader } from 'onlyonce/keys'
import type { KeySettings } from '../key-settings.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A write that changes nothing here: it needs no Idempotency-Key. */
    keyless?: boolean
  }
}

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** Whether a record may answer the request: a write with a key, on a route that there is. */
export function mayBeReplay(request: FastifyRequest): boolean {
  return !request.is404 && needsKey(request) && request.headers['idempotency-key'] !== undefined
}

/**
 * Refuses a write without a key, or with one that can be none. The library would too, behind this: thrown here, it is
 * answered like all else that is wrong with a request, with the request's id in it.
 */
export function requireKey(request: FastifyRequest, { issued }: KeySettings): void {
  if (needsKey(request)) parseKeyHeader(request.raw.headersDistinct['idempotency-key'], { issued })
}

/** The key of a request; null where it has none, or one that can be none. */
export function keyOf(request: FastifyRequest): string | null {
  try {
    return parseKeyHeader(request.raw.headersDistinct['idempotency-key'])
  } catch {
    return null
  }
}

function needsKey({ method, routeOptions }: FastifyRequest): boolean {
  return WRITES.has(method) && routeOptions.config.keyless !== true
}
