import { Type } from 'typebox'
import { type Verification, verify } from '../ledger/index.ts'
import { requireOpsToken } from './auth.ts'
import { LIST_RUNS } from './ops-sql.ts'
import { BY_ID, PAGE_QUERY, pageOf, pageSchema, readPage } from './pages.ts'
import { Timestamp } from './schemas.ts'
import type { Routes } from './type.ts'

const RUNS = BY_ID('reconciliations', 'rec')
const Run = Type.Object({
  id: Type.String(),
  books: Type.String({ description: 'The processor and the mode, such as stripe:live.' }),
  from_at: Timestamp,
  to_at: Timestamp,
  created_at: Timestamp,
  matched: Type.Integer(),
  missing_here: Type.Integer(),
  missing_there: Type.Integer(),
  amount_mismatch: Type.Integer(),
  aged_unknown: Type.Integer(),
})
const tags = ['ops']
/** Whose reads they are: no account has this name. */
const OPERATORS = 'operators'

/** Whether the books are right: our own, and ours beside those of the processors. */
export const opsBookRoutes: Routes = async (app, service) => {
  const { pool, reads } = service
  app.addHook('onRequest', requireOpsToken(service, service.strangers))

  // It reads the whole ledger: whoever asks meanwhile is told what the first is told.
  let verifying: Promise<Verification> | null = null
  app.get(
    '/ops/ledger',
    {
      schema: {
        summary: 'Prove the ledger over the whole of its tables',
        tags,
        response: {
          200: Type.Object({
            ok: Type.Boolean(),
            transactions: Type.Integer(),
            entries: Type.Integer(),
            problems: Type.Array(Type.Unknown()),
            in_flight: Type.Array(Type.Unknown()),
            cut_short: Type.Array(Type.String()),
          }),
        },
      },
    },
    async () => {
      verifying ??= verify(pool).finally(() => {
        verifying = null
      })
      return await verifying
    },
  )

  app.get(
    '/ops/reconciliations',
    {
      schema: {
        summary: 'List what comparing our books with those of the processors has found, the newest first',
        tags,
        querystring: Type.Object(PAGE_QUERY, { additionalProperties: false }),
        response: { 200: pageSchema(Run) },
      },
    },
    async ({ query }) => {
      const { limit, after } = readPage(RUNS, query)
      const { rows } = await reads.of(OPERATORS).query(LIST_RUNS, [after?.[0] ?? null, limit + 1])
      return pageOf(RUNS, rows as { id: string }[], limit, ({ id }) => [id])
    },
  )
}
