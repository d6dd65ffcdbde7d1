import { LIMITS } from 'onlyonce/limits'
import { Type } from 'typebox'
import {
  createAccount,
  createApiKey,
  findAccount,
  listAccounts,
  listApiKeys,
  revokeApiKey,
  updateAccount,
} from '../accounts/index.ts'
import { makeId } from '../ids.ts'
import { forgetPayer, windowOf } from '../payments/index.ts'
import { Refused } from '../problems.ts'
import type { Service } from '../service.ts'
import { requireOpsToken } from './auth.ts'
import { BY_ID, PAGE_QUERY, pageOf, pageSchema, readPage, writeCursor } from './pages.ts'
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
const ACCOUNTS = BY_ID('accounts', 'acct')
const PAYMENTS = BY_ID('payers', 'pay')
const tags = ['ops']

/**
 * For the operators of the service, who have a credential of their own. What is written here takes no Idempotency-Key: the
 * stored reply would keep an API key, which is told once and kept by nobody.
 */
export const opsRoutes: Routes = async (app, service) => {
  const { pool } = service
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

  app.get(
    '/ops/accounts',
    {
      schema: {
        summary: 'List accounts, the newest first',
        tags,
        querystring: Type.Object(PAGE_QUERY, { additionalProperties: false }),
        response: { 200: pageSchema(Account) },
      },
    },
    async ({ query }) => {
      const { limit, after } = readPage(ACCOUNTS, query)
      const found = await listAccounts(pool, after?.[0] ?? null, limit + 1)
      return pageOf(ACCOUNTS, found, limit, ({ id }) => [id])
    },
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
    async ({ params: { account_id: accountId, mode, key_id: keyId } }) => {
      const revoked = await revokeApiKey(pool, accountId, mode, keyId)
      if (revoked === null) throw new Refused('not_found')
      return revoked
    },
  )

  app.post(
    '/ops/accounts/:account_id/payers/forget',
    {
      schema: {
        summary: 'Erase a payer from the payments of an account, or put a pseudonym in its place',
        description:
          'Erasing takes the metadata of the payments and their refunds, too. Copies in stored replies and in events go with those: see copies_until. So does the one by which the same order is still known as a duplicate; where a payment is held or in doubt, it goes when that has ended. Go on with next_cursor until it is null.',
        tags,
        params: Type.Object({ account_id: AccountId }),
        body: Type.Object(
          {
            mode: Mode,
            payer: Type.String({ minLength: 1, maxLength: 200 }),
            how: Type.Enum(['erase', 'pseudonymise']),
            pseudonym: Type.Optional(
              Type.String({
                pattern: '^payer_[0-9a-f]{32}$',
                description: 'That of the page before, where there was one. It is made where none is given.',
              }),
            ),
            cursor: PAGE_QUERY.cursor,
          },
          { additionalProperties: false },
        ),
        response: {
          200: Type.Object({
            payments: Type.Integer({ description: 'That were changed.' }),
            pseudonym: Nullable(Type.String()),
            copies_until: Timestamp,
            next_cursor: Nullable(Type.String()),
          }),
        },
      },
    },
    async ({ params, body, log }) => {
      const account = `${params.account_id}:${body.mode}`
      if ((await findAccount(pool, account)) === null) throw new Refused('not_found')
      const pseudonym = body.how === 'erase' ? null : (body.pseudonym ?? makeId('payer'))
      const { after: position } = readPage(PAYMENTS, body.cursor === undefined ? {} : { cursor: body.cursor })
      const { payer } = body
      const lookBackMs = comparedMs(service, body.mode)
      const { changed, after } = await forgetPayer(pool, account, {
        payer,
        pseudonym,
        after: position?.[0] ?? null,
        comparedMs: lookBackMs,
      })
      log.info({ account, how: body.how, payments: changed }, 'a payer was forgotten')
      return {
        payments: changed,
        pseudonym,
        copies_until: new Date(Date.now() + Math.max(lookBackMs, copiesKeptMs(service))),
        next_cursor: after === null ? null : writeCursor(PAYMENTS, [after]),
      }
    },
  )
}

/** As long as a payment of this mode is in the way of another one of the same order. */
function comparedMs({ config, gateways }: Service, mode: 'test' | 'live'): number {
  return windowOf(config.keys.retentionMs, gateways[mode]?.keyLifetimeMs ?? 0)
}

/** Stored replies replay for so long, and events are listed for so long. */
function copiesKeptMs({ config }: Service): number {
  return Math.max(config.keys.retentionMs, LIMITS.webhookRetentionMs)
}
