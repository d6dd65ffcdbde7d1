import { idempotent } from 'onlyonce/fastify'
import { Type } from 'typebox'
import { callerOf } from './auth.ts'
import { Timestamp } from './schemas.ts'
import type { Routes } from './type.ts'

/** What a key can be issued for. Each module of routes that has an operation names it here. */
const OPERATIONS = [
  'payments.create',
  'payments.capture',
  'payments.cancel',
  'refunds.create',
  'transfers.create',
] as const

const EXPIRES_IN_MAX_S = 86_400 - 120

export const idempotencyKeyRoutes: Routes = async (app, { once }) => {
  app.post(
    '/v1/idempotency-keys',
    {
      schema: {
        summary: 'Issue a key',
        description: 'A key of ours, for a client that has none of its own. It belongs to one operation.',
        tags: ['keys'],
        body: Type.Object(
          {
            operation: Type.Enum([...OPERATIONS]),
            expires_in: Type.Optional(
              Type.Integer({
                minimum: 1,
                maximum: EXPIRES_IN_MAX_S,
                description: 'In seconds. An hour by default.',
              }),
            ),
          },
          { additionalProperties: false },
        ),
        response: {
          201: Type.Object({ key: Type.String(), operation: Type.String(), expires_at: Timestamp }),
        },
      },
      preHandler: idempotent({ operation: 'idempotency_keys.create', protect: 'transaction' }),
    },
    async (request, reply) => {
      const { operation, expires_in } = request.body
      const { account } = callerOf(request)
      const { key, expires_at } = once.issueKey({
        account,
        operation,
        ...(expires_in !== undefined && { expires_in_ms: expires_in * 1_000 }),
      })
      return reply.code(201).send({ key, operation, expires_at: new Date(expires_at) })
    },
  )
}
