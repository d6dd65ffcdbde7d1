import type { Onlyonce, RecordId } from 'onlyonce'
import { parseKeyHeader } from 'onlyonce/keys'
import { LIMITS } from 'onlyonce/limits'
import { operator } from 'onlyonce/operator'
import type { PostgresTx } from 'onlyonce/postgres'
import { Type } from 'typebox'
import { callerOf } from './auth.ts'
import { Nullable, Timestamp } from './schemas.ts'
import type { Routes } from './type.ts'

/** What a key can be used for. Each module of routes that has an operation names it here. */
export const KEY_OPERATIONS = [
  'payments.create',
  'payments.capture',
  'payments.cancel',
  'refunds.create',
  'transfers.create',
  'webhook_endpoints.create',
  'webhook_endpoints.update',
  'webhook_endpoints.remove',
  'webhook_endpoints.rotate_secret',
  'webhook_endpoints.replay',
] as const

const Operation = Type.Enum([...KEY_OPERATIONS])
const Use = Type.Object({
  operation: Type.String(),
  state: Type.Enum(['in_progress', 'completed', 'retryable', 'unknown', 'parked']),
  detail: Type.String({ description: 'What became of the request.' }),
  next: Type.String({ description: 'What a client does next.' }),
  status: Nullable(Type.Integer({ description: 'Of the answer that retries get. Null: there is none yet.' })),
  location: Nullable(Type.String({ description: 'Where the result is.' })),
  created_at: Timestamp,
  changed_at: Timestamp,
  expires_at: Nullable(Timestamp),
})

export const idempotencyKeyRoutes: Routes = async (app, { once, config, reads }) => {
  const tags = ['keys']
  const { issuedKeyLifetimeMaxMs, issuedKeySkewMs } = LIMITS
  // A key must not outlive the record of its use.
  const keptMs = config.keys.retentionMs - 2 * issuedKeySkewMs
  const expiresMaxS = Math.max(1, Math.floor(Math.min(issuedKeyLifetimeMaxMs, keptMs) / 1_000))

  app.post(
    '/v1/idempotency-keys',
    {
      // Nothing is written, so sending it twice gives two keys, of which one is used.
      config: { keyless: true },
      schema: {
        summary: 'Issue a key',
        description: 'A key of ours, for a client that has none of its own. It belongs to one operation.',
        tags,
        body: Type.Object(
          {
            operation: Operation,
            expires_in: Type.Optional(
              Type.Integer({
                minimum: 1,
                maximum: expiresMaxS,
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
    },
    async (request, reply) => {
      const { operation, expires_in: expiresIn } = request.body
      const { account } = callerOf(request)
      const { key, expiresAt } = once.issueKey({
        account,
        operation,
        ...(expiresIn !== undefined && { expiresInMs: expiresIn * 1_000 }),
      })
      return reply.code(201).send({ key, operation, expires_at: new Date(expiresAt) })
    },
  )

  app.get(
    '/v1/idempotency-keys/:key',
    {
      schema: {
        summary: 'Tell what became of a key',
        description:
          'A key that has no record is not known: a request with it may be under way and not to be seen yet. To be sure, send the request again with the same key.',
        tags,
        params: Type.Object({ key: Type.String({ minLength: 1, maxLength: 255 }) }),
        querystring: Type.Object({ operation: Type.Optional(Operation) }, { additionalProperties: false }),
        response: {
          200: Type.Object({
            key: Type.String(),
            known: Type.Boolean({ description: 'False says nothing about whether anything was executed.' }),
            detail: Type.String(),
            uses: Type.Array(Use),
          }),
        },
      },
    },
    async (request) => {
      const { key } = request.params
      const { account } = callerOf(request)
      const operations = request.query.operation === undefined ? KEY_OPERATIONS : [request.query.operation]
      const find = (key: string) =>
        reads.turn(account, () =>
          usesOf(
            once,
            operations.map((operation) => ({ account, operation, key })),
          ),
        )
      const uses = await find(key)
      // A key may itself begin with a quotation mark, so the header's form of another one comes second.
      const unquoted = uses.length > 0 ? null : unquote(key)
      const found = unquoted === null ? { key, uses } : { key: unquoted, uses: await find(unquoted) }
      const known = found.uses.length > 0
      return { ...(known ? found : { key, uses }), known, detail: known ? KNOWN : NOT_KNOWN }
    },
  )
}

/** The key of what stands in its header between quotation marks; null where it is none. */
function unquote(text: string): string | null {
  if (!text.startsWith('"')) return null
  try {
    return parseKeyHeader(text)
  } catch {
    return null
  }
}

const KNOWN = 'The key was used; see uses.'
const NOT_KNOWN =
  'No record of this key can be seen. That does not tell whether anything was executed: a request with it may be under way. Send the request again with the same key to get its outcome.'

/** One after the other: one request takes one connection at a time. */
async function usesOf(once: Onlyonce<PostgresTx>, records: readonly RecordId[]) {
  const uses: NonNullable<Awaited<ReturnType<typeof useOf>>>[] = []
  for (const record of records) {
    const use = await useOf(once, record)
    if (use !== null) uses.push(use)
  }
  return uses
}

/** What an account may know of its record: not who worked on it. Null where there is none to be seen. */
async function useOf(once: Onlyonce<PostgresTx>, id: RecordId) {
  const { state, createdAt, changedAt, expiresAt } = await once.explain(id)
  if (state === 'none' || state === 'expired') return null
  const reply = state === 'completed' ? (await operator(once).show(id, { reply: true })).reply : null
  return {
    operation: id.operation,
    state,
    ...(state === 'retryable' && (await didNothing(once, id)) ? NOTHING_DONE : STORIES[state]),
    status: reply?.status ?? null,
    location: reply?.headers.find(([name]) => name === 'location')?.[1] ?? null,
    created_at: new Date(createdAt!),
    changed_at: new Date(changedAt!),
    expires_at: expiresAt === null ? null : new Date(expiresAt),
  }
}

/** Of a durable operation: none of its steps is in the database. Of a handler that cannot be known. */
async function didNothing(once: Onlyonce<PostgresTx>, id: RecordId): Promise<boolean> {
  if (id.operation.startsWith('webhook_endpoints.')) return false
  const { record } = await operator(once).show(id)
  return record?.state === 'retryable' && record.recoveryPoint === null
}

const NOTHING_DONE = {
  detail: 'The request was refused or could not begin, and nothing of it has been done.',
  next: 'Send the same request with the same key again if it is still to be executed. Use a new key only if no request with this one is sent any more.',
} as const

const STORIES = {
  in_progress: {
    detail: 'The request is under way, or its process is gone and another one will go on with it.',
    next: 'Send the same request with the same key again after a while.',
  },
  completed: {
    detail: 'The request has its outcome, and this is the status of its answer.',
    next: 'Send the same request with the same key again to get the whole answer.',
  },
  retryable: {
    detail: 'The request has not ended. Some of its steps may have been done already.',
    next: 'Send the same request with the same key again: it goes on where it was. Do not use a new key.',
  },
  unknown: {
    detail: 'Whether the request was executed is being found out.',
    next: 'Send the same request with the same key again after a while. Do not use a new key.',
  },
  parked: {
    detail: 'Whether the request was executed has to be decided by an operator.',
    next: 'Contact support. Do not use a new key.',
  },
} as const
