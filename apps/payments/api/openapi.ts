import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifySchema, RouteOptions } from 'fastify'
import type { Config } from '../config.ts'
import { METADATA_NAME } from '../payments/schemas.ts'
import { isKeyed } from './answers.ts'
import { describeAnswers } from './openapi-answers.ts'
import { Problem } from './schemas.ts'
import type { Api } from './type.ts'

/**
 * What the page of the documentation may load, and where it may send: nothing but what comes from here. Its styles are written by its
 * own program; images of it are in its stylesheet.
 */
const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** Describes the routes from the very schemas that validate. Add it before them. */
export async function describeRoutes(app: Api, { docs }: Pick<Config, 'docs'>): Promise<void> {
  app.addSchema({ ...Problem, $id: 'Problem' })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Onlyonce payments',
        version: '1',
        description: 'Payments that take effect once, however often they are sent.',
      },
      components: {
        securitySchemes: {
          api_key: { type: 'http', scheme: 'bearer', description: 'An API key: sk_test_… or sk_live_….' },
          ops_token: { type: 'http', scheme: 'bearer', description: 'The token of the operators.' },
        },
      },
    },
    refResolver: { buildLocalReference: (json) => `${json.$id}` },
    transformObject: (described) => {
      if (!('openapiObject' in described)) return described.swaggerObject
      described.openapiObject.paths?.['/v1/payments']?.get?.parameters?.push(METADATA_FILTER)
      for (const path of Object.values(described.openapiObject.paths ?? {})) nameMetadata(path?.post)
      return described.openapiObject
    },
    transform: ({ schema, url, route }) => ({ url, schema: completed(schema, url, route) }),
  })
  if (docs) await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: DOCS_POLICY })
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
}

/** What holds for all routes of a kind, and need not stand at each of them. */
function completed(
  schema: FastifySchema | undefined,
  url: string,
  { method, config }: RouteOptions,
): FastifySchema {
  const route = {
    method: [method].flat()[0]!,
    url,
    keyless: config?.keyless === true,
  }
  return {
    ...schema,
    ...(url.startsWith('/v1/') && { security: [{ api_key: [] }] }),
    ...((url.startsWith('/ops/') || url === '/metrics') && { security: [{ ops_token: [] }] }),
    // Only here: a key that is missing or wrong is told by the boundary, which knows more of keys than a schema.
    ...(isKeyed(route) && { headers: IDEMPOTENCY_KEY }),
    response: describeAnswers(route, schema?.response),
  }
}

/** A pattern of names, by which requests are checked, is lost on the way into the document. */
const METADATA_NAMES = { pattern: `^${METADATA_NAME}$` }

function nameMetadata(operation: unknown): void {
  type Body = { content?: Record<string, { schema?: { properties?: { metadata?: object } } }> }
  const { requestBody } = (operation ?? {}) as { requestBody?: Body }
  const metadata = requestBody?.content?.['application/json']?.schema?.properties?.metadata
  if (metadata !== undefined) Object.assign(metadata, { propertyNames: METADATA_NAMES })
}

/** The filter is read by a pattern of names, which no schema of a query tells the document. */
const METADATA_FILTER = {
  name: 'metadata',
  in: 'query',
  required: false,
  style: 'deepObject',
  explode: true,
  description: 'Payments with this metadata: metadata[color]=red. Several names are all asked for.',
  schema: {
    type: 'object',
    propertyNames: METADATA_NAMES,
    additionalProperties: { type: 'string', maxLength: 500 },
  },
} as const

const IDEMPOTENCY_KEY = {
  type: 'object',
  required: ['Idempotency-Key'],
  properties: {
    'Idempotency-Key': {
      type: 'string',
      minLength: 8,
      maxLength: 255,
      description:
        'Names the action. Send the same key again when no answer came. A refusal says in executed what is known about the key.',
    },
  },
}
