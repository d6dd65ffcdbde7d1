import type { FastifyRequest } from 'fastify'
import { Refused } from '../problems.ts'
import { refuseUnfit } from './json.ts'

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>
}

/**
 * Numbers of a query come as text. Only what is written as a whole number becomes one, where the schema asks for it: bodies are
 * never coerced, and neither is `limit=` or `limit=1e1`.
 */
export async function readQuery(request: FastifyRequest): Promise<void> {
  refuseBadEncoding(request.url)
  refuseUnfit(request.params)
  refuseUnfit(request.query)
  const { properties = {} } = (request.routeOptions.schema?.querystring ?? {}) as ObjectSchema
  const query = request.query as Record<string, unknown>
  for (const [name, value] of Object.entries(query)) {
    const whole = typeof value === 'string' && /^-?\d{1,15}$/.test(value)
    if (whole && properties[name]?.type === 'integer') query[name] = Number(value)
    if (properties[name]?.type === 'boolean' && (value === 'true' || value === 'false'))
      query[name] = value === 'true'
  }
}

/** The parser leaves what it cannot decode as it is: a filter by something that nobody has written. */
function refuseBadEncoding(url: string): void {
  const mark = url.indexOf('?')
  try {
    if (mark >= 0) decodeURIComponent(url.slice(mark + 1))
  } catch {
    throw new Refused('invalid_request', { detail: 'The query is not UTF-8 in percent-encoding.' })
  }
}
