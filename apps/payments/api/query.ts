import type { FastifyRequest } from 'fastify'
import { Refused } from '../problems.ts'
import { shownField } from './cards.ts'
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
  const schema = request.routeOptions.schema?.querystring as ObjectSchema | undefined
  const query = request.query as Record<string, unknown>
  if (schema === undefined) refuseUnknown(request, query)
  const { properties = {} } = schema ?? {}
  for (const [name, value] of Object.entries(query)) {
    const whole = typeof value === 'string' && /^-?\d{1,15}$/.test(value)
    if (whole && properties[name]?.type === 'integer') query[name] = Number(value)
    if (properties[name]?.type === 'boolean' && (value === 'true' || value === 'false'))
      query[name] = value === 'true'
  }
}

/** A route that takes no query knows no parameter, so a client that sends one means something else than it gets. The pages at /docs are not ours. */
function refuseUnknown({ is404, routeOptions }: FastifyRequest, query: Record<string, unknown>): void {
  const [name] = Object.keys(query)
  if (name === undefined || is404 || routeOptions.url?.startsWith('/docs')) return
  const field = shownField([name])
  throw new Refused('invalid_request', { field, detail: `${field} is not known here.` })
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
