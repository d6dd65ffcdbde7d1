import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifySchema, RouteOptions } from 'fastify'
import { isKeyed } from './answers.ts'
import { describeAnswers } from './openapi-answers.ts'
import { Problem } from './schemas.ts'
import type { Api } from './type.ts'

/** Describes the routes from the very schemas that validate. Add it before them. */
export async function describeRoutes(app: Api): Promise<void> {
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
    transform: ({ schema, url, route }) => ({ url, schema: completed(schema, url, route) }),
  })
  await app.register(swaggerUi, { routePrefix: '/docs' })
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
