import type { FastifyRequest } from 'fastify'
import { parseKeyHeader } from 'onlyonce'

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/**
 * Refuses a write without a key, or with one that can be none. The library would too, behind this: thrown here, it is
 * answered like all else that is wrong with a request, with the request's id in it.
 */
export function requireKey({ method, raw }: FastifyRequest): void {
  if (WRITES.has(method)) parseKeyHeader(raw.headersDistinct['idempotency-key'])
}
