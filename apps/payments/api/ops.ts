import { operator } from 'onlyonce'
import { Type } from 'typebox'
import {
  createAccount,
  createApiKey,
  findAccount,
  listApiKeys,
  revokeApiKey,
  updateAccount,
} from '../accounts/index.ts'
import { Refused } from '../problems.ts'
import { requireOpsToken } from './auth.ts'
import { withCursor } from './cursors.ts'
import { API_LIMITS } from './limits.ts'
import { Nullable, Timestamp } from './schemas.ts'
import type { Routes } from './type.ts'

const AccountId = Type.String({ pattern: '^acct_[0-9a-f]{32}$' })
const Mode = Type.Enum(['test', 'live'])
const Duplicates = Type.Enum(['warn', 'refuse'], {
  description:
    'What becomes of a payment with the payer, amount and reference of another, where its request does not say so.',
})
const Name = Type.String({ minLength: 1, maxLength: 200 })
const Account = Type.Object({
  id: Type.String(),
  name: Type.String(),
  duplicates: Duplicates,
  created_at: Timestamp,
})
const ApiKey = Type.Object({
  id: Type.String(),
  mode: Mode,
  last4: Type.String(),
  created_at: Timestamp,
  revoked_at: Nullable(Timestamp),
})
const tags = ['ops']

/**
 * For the operators of the service, who have a credential of their own. What is written here takes no Idempotency-Key: the
 * stored reply would keep an API key, which is told once and kept by nobody.
 */
export const opsRoutes: Routes = async (app, service) => {
  const { pool, once } = service
  app.addHook('onRequest', requireOpsToken(service, service.strangers))

  app.post(
    '/ops/accounts',
    {
      schema: {
        summary: 'Create an account',
        tags,
        body: Type.Object({ name: Name }, { additionalProperties: false }),
        response: { 201: Account },
      },
    },
    async (request, reply) => reply.code(201).send(await createAccount(pool, request.body.name)),
  )

  app.patch(
    '/ops/accounts/:account_id',
    {
      schema: {
        summary: 'Change an account',
        description: 'What is not named stays. It is the same in both modes.',
        tags,
        params: Type.Object({ account_id: AccountId }),
        body: Type.Object(
          { name: Type.Optional(Name), duplicates: Type.Optional(Duplicates) },
          { additionalProperties: false, minProperties: 1 },
        ),
        response: { 200: Account },
      },
    },
    async (request) => {
      const updated = await updateAccount(pool, request.params.account_id, request.body)
      if (updated === null) throw new Refused('not_found')
      return updated
    },
  )

  app.post(
    '/ops/accounts/:account_id/api-keys',
    {
      schema: {
        summary: 'Create an API key; it is told once',
        tags,
        params: Type.Object({ account_id: AccountId }),
        body: Type.Object({ mode: Mode }, { additionalProperties: false }),
        response: { 201: Type.Object({ ...ApiKey.properties, api_key: Type.String() }) },
      },
    },
    async (request, reply) => {
      const created = await createApiKey(pool, request.params.account_id, request.body.mode)
      if (created === null) throw new Refused('not_found')
      return reply.code(201).send(created)
    },
  )

  app.get(
    '/ops/accounts/:account_id/api-keys',
    {
      schema: {
        summary: 'List the API keys of an account',
        tags,
        params: Type.Object({ account_id: AccountId }),
        response: { 200: Type.Object({ data: Type.Array(ApiKey) }) },
      },
    },
    async ({ params }) => {
      if ((await findAccount(pool, `${params.account_id}:test`)) === null) throw new Refused('not_found')
      return { data: await listApiKeys(pool, params.account_id) }
    },
  )

  app.post(
    '/ops/accounts/:account_id/api-keys/:mode/:key_id/revoke',
    {
      schema: {
        summary: 'Revoke an API key, at once',
        tags,
        params: Type.Object({ account_id: AccountId, mode: Mode, key_id: Type.String({ maxLength: 100 }) }),
        response: { 200: ApiKey },
      },
    },
    async ({ params: { account_id, mode, key_id } }) => {
      const revoked = await revokeApiKey(pool, account_id, mode, key_id)
      if (revoked === null) throw new Refused('not_found')
      return revoked
    },
  )

  app.get(
    '/ops/records',
    {
      schema: {
        summary: 'List records that are not finished',
        tags,
        querystring: Type.Object(
          {
            account: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
            older_than: Type.Optional(
              Type.Integer({ minimum: 0, maximum: 31_536_000, description: 'In seconds.' }),
            ),
            limit: Type.Optional(Type.Integer({ minimum: 1, maximum: API_LIMITS.page_max })),
            cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 2_000 })),
          },
          { additionalProperties: false },
        ),
        response: {
          200: Type.Object({
            data: Type.Array(Type.Unknown()),
            has_more: Type.Boolean(),
            next_cursor: Nullable(Type.String()),
          }),
        },
      },
    },
    async ({ query: { account, older_than, limit, cursor } }) => {
      const page = await withCursor(cursor, () =>
        operator(once).list({
          ...(account !== undefined && { account }),
          ...(older_than !== undefined && { older_than_ms: older_than * 1_000 }),
          limit: limit ?? API_LIMITS.page_default,
          ...(cursor !== undefined && { cursor }),
        }),
      )
      return { data: page.records, has_more: page.cursor !== null, next_cursor: page.cursor }
    },
  )
}
