import type { FastifyRequest } from 'fastify'
import { parseKeyHeader } from 'onlyonce'
import type { KeySettings } from '../key-settings.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A write that changes nothing here: it needs no Idempotency-Key. */
    keyless?: boolean
  }
}

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/**
 * Refuses a write without a key, or with one that can be none. The library would too, behind this: thrown here, it is
 * answered like all else that is wrong with a request, with the request's id in it.
 */
export function requireKey({ method, raw, routeOptions }: FastifyRequest, { issued }: KeySettings): void {
  if (!WRITES.has(method) || routeOptions.config.keyless === true) return
  parseKeyHeader(raw.headersDistinct['idempotency-key'], { issued })
}
