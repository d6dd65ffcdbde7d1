import { idempotent } from 'onlyonce/fastify'
import { LIMITS } from 'onlyonce/limits'
import { Type } from 'typebox'
import { openWebhooks } from '../webhooks.ts'
import { callerOf } from './auth.ts'
import { IdParams, Nullable } from './schemas.ts'
import type { Routes } from './type.ts'
import { Endpoint, EndpointWithSecret, presentEndpoint } from './webhook-schemas.ts'

const Url = Type.String({
  minLength: 1,
  maxLength: 2_000,
  description: 'Over https, and never to a private address.',
})
const Types = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
  minItems: 1,
  maxItems: LIMITS.webhookTypesMax,
  description: 'The events that it wants; payment.* is all that begin so. Null: all of them.',
})
const Description = Type.String({ minLength: 1, maxLength: LIMITS.whyLengthMax })
const tags = ['webhooks']

/**
 * These writes go through the library's own connections, so no transaction of ours can hold them, and they are claimed, run and
 * stored. What they refuse, they refuse before they did anything: `answerError` says so, and the key is free again.
 */
const WRITE = { final: { '4xx': 'retry' } } as const
/** Running it twice leaves what running it once does. */
const REPEATABLE = { ...WRITE, rerunnable: true } as const

export const webhookEndpointRoutes: Routes = async (app, service) => {
  const { endpoints } = openWebhooks(service)
  const { reads } = service

  app.post(
    '/v1/webhook-endpoints',
    {
      schema: {
        summary: 'Create a webhook endpoint',
        description:
          'Its secret is shown here and never again. A replay with the same Idempotency-Key shows the same one.',
        tags,
        body: Type.Object(
          {
            url: Url,
            types: Type.Optional(Nullable(Types)),
            description: Type.Optional(Nullable(Description)),
          },
          { additionalProperties: false },
        ),
        response: { 201: EndpointWithSecret },
      },
      // Not repeatable: after a crash it would leave an endpoint whose secret nobody has.
      preHandler: idempotent({ operation: 'webhook_endpoints.create', ...WRITE }),
    },
    async (request, reply) => {
      const { account } = callerOf(request)
      const { endpoint, secret } = await endpoints.create({ account, ...request.body })
      return reply.code(201).send({ ...presentEndpoint(endpoint), secret })
    },
  )

  app.get(
    '/v1/webhook-endpoints',
    {
      schema: {
        summary: 'List webhook endpoints',
        tags,
        querystring: Type.Object({}, { additionalProperties: false }),
        response: { 200: Type.Object({ data: Type.Array(Endpoint) }) },
      },
    },
    async (request) => {
      const { account } = callerOf(request)
      const { items: found } = await reads.turn(account, () => endpoints.list({ account }))
      return { data: found.map(presentEndpoint) }
    },
  )

  app.get(
    '/v1/webhook-endpoints/:id',
    { schema: { summary: 'Get a webhook endpoint', tags, params: IdParams, response: { 200: Endpoint } } },
    async (request) => {
      const { account } = callerOf(request)
      const { id } = request.params
      return presentEndpoint(await reads.turn(account, () => endpoints.get({ account, id })))
    },
  )

  app.patch(
    '/v1/webhook-endpoints/:id',
    {
      schema: {
        summary: 'Change a webhook endpoint',
        description: 'What is not named stays. Disabling and enabling is a change of its own.',
        tags,
        params: IdParams,
        body: Type.Object(
          {
            url: Type.Optional(Url),
            types: Type.Optional(Nullable(Types)),
            description: Type.Optional(Nullable(Description)),
            state: Type.Optional(Type.Enum(['enabled', 'disabled'])),
          },
          { additionalProperties: false, minProperties: 1 },
        ),
        response: { 200: Endpoint },
      },
      preHandler: idempotent({ operation: 'webhook_endpoints.update', ...REPEATABLE }),
    },
    async (request) => {
      const name = { account: callerOf(request).account, id: request.params.id }
      const { state, ...changes } = request.body
      // First what may be refused: then nothing is changed where something is.
      const changed = await endpoints.update({ ...name, ...changes })
      if (state === undefined) return presentEndpoint(changed)
      return presentEndpoint(await (state === 'enabled' ? endpoints.enable(name) : endpoints.disable(name)))
    },
  )

  app.delete(
    '/v1/webhook-endpoints/:id',
    {
      schema: {
        summary: 'Remove a webhook endpoint',
        tags,
        params: IdParams,
        response: { 204: Type.Null({ description: 'It is gone.' }) },
      },
      preHandler: idempotent({ operation: 'webhook_endpoints.remove', ...REPEATABLE }),
    },
    async (request, reply) => {
      await endpoints.remove({ account: callerOf(request).account, id: request.params.id })
      return reply.code(204).send()
    },
  )

  app.post(
    '/v1/webhook-endpoints/:id/rotate-secret',
    {
      schema: {
        summary: 'Make a new secret for a webhook endpoint',
        description:
          'It is shown here and never again. The old one signs beside it for as long as is asked for.',
        tags,
        params: IdParams,
        body: Type.Object(
          {
            keep_old_for: Type.Optional(
              Type.Integer({
                minimum: 0,
                maximum: Math.floor(LIMITS.webhookSecretKeptMaxMs / 1_000),
                default: 0,
                description: 'In seconds.',
              }),
            ),
          },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ id: Type.String(), secret: Type.String() }) },
      },
      preHandler: idempotent({ operation: 'webhook_endpoints.rotate_secret', ...REPEATABLE }),
    },
    async (request) => {
      const { id } = request.params
      const keepMs = (request.body.keep_old_for ?? 0) * 1_000
      const { secret } = await endpoints.rotateSecret({ account: callerOf(request).account, id, keepMs })
      return { id, secret }
    },
  )
}
