/** Which keys what is stored was made with; and what is sealed, page by page, to be sealed anew. */
import { createHash } from 'node:crypto'
import type { Pool } from 'pg'
import { LIMITS } from '../../core/limits.ts'
import type { KeyPurpose } from '../../core/ring.ts'
import type { RecordId, Reply } from '../../record/index.ts'
import type { SealedPlace } from '../../seal/index.ts'
import { withPrefix } from '../event-id.ts'
import { evidencePlace } from '../sealed-operations.ts'
import { webhookSecretPlace } from '../sealed-webhooks.ts'
import { classify } from './classify.ts'
import { committed } from './committed.ts'
import * as sql from './sql/rotation.ts'

/** How much of one kind names a key. */
export interface KeyUse {
  readonly purpose: KeyPurpose
  readonly what: 'records' | 'replies' | 'inputs' | 'steps' | 'evidence' | 'webhook secrets'
  /** Null: it is plain. */
  readonly keyId: string | null
  readonly count: number
  /** Those among them that wait for an owner, a worker or an operator: no retention ends them. */
  readonly unfinished: number
  readonly keptUntil: number | null
}

/** Reads all tables, and so has a bound of its own, which the server keeps. */
export async function countKeyUse(pool: Pool, schema: string): Promise<readonly KeyUse[]> {
  const { rows } = await committed(pool, LIMITS.surveyMaxMs, (client) =>
    client.query(sql.countKeyUse(schema)),
  )
  return rows.map(({ purpose, what, key_id, count, unfinished, kept_until_ms }) => ({
    purpose,
    what,
    keyId: key_id,
    count,
    unfinished,
    keptUntil: kept_until_ms,
  }))
}

/** Something sealed, where it stands, and what it is known by. */
export type SealedItem = {
  /** A name for people. */
  readonly name: string
  /** What it is found by again, in the order of the statement that puts it back. */
  readonly id: readonly string[]
  readonly was: Buffer
} & (
  | { readonly kind: 'reply'; readonly of: RecordId; readonly reply: Reply }
  | {
      readonly kind: 'bytes'
      readonly place: SealedPlace
      readonly bytes: Buffer
      readonly sealedBy: string | null
    }
)

/** One page, and where the next begins; null where it was the last. */
export interface SealedPage {
  readonly items: readonly { readonly shelf: Shelf; readonly item: SealedItem }[]
  /** Left to the owners that work on them now. */
  readonly owned: number
  readonly after: readonly string[] | null
}

/** A kind of things that are put back by one statement. */
export type Shelf = 'replies' | 'inputs' | 'steps' | 'evidence' | 'webhook secrets'

/** The tables that are gone through, and where each begins. */
export const SEALED_TABLES = ['records', 'evidence', 'webhook secrets'] as const
export type SealedTable = (typeof SEALED_TABLES)[number]
const FIRST_UUID = '00000000-0000-0000-0000-000000000000'
const FROM: Readonly<Record<SealedTable, readonly string[]>> = {
  records: ['', '', ''],
  evidence: ['', ''],
  'webhook secrets': ['', FIRST_UUID, FIRST_UUID],
}

export interface PageRequest {
  readonly schema: string
  readonly table: SealedTable
  /** Null: from the beginning. */
  readonly after: readonly string[] | null
  readonly currentId: string
  /** What is plain too. */
  readonly plain: boolean
}

export async function readSealedPage(pool: Pool, request: PageRequest): Promise<SealedPage> {
  const { schema, table, currentId, plain } = request
  const limit = LIMITS.resealPageMax
  const values = [...(request.after ?? FROM[table]), limit, currentId, plain]
  const text = {
    records: sql.pageOfRecords,
    evidence: sql.pageOfEvidence,
    'webhook secrets': sql.pageOfWebhookSecrets,
  }
  const { rows } = await committed(pool, LIMITS.statementMaxMs, (client) =>
    client.query(text[table](schema), values),
  )
  const last = rows.length === limit ? rows.at(-1) : null
  const found = rows.map((row) => READ[table](row))
  return {
    items: found.flatMap(({ items }) => items),
    owned: found.filter(({ owned }) => owned).length,
    after: last === null ? null : READ[table](last).key,
  }
}

/** Puts what was sealed anew in the place of what was read, and nothing where that has changed. Tells how many were put. */
export async function putSealed(
  pool: Pool,
  schema: string,
  shelf: Shelf,
  currentId: string,
  sealed: readonly { readonly item: SealedItem; readonly bytes: Buffer }[],
): Promise<number> {
  if (sealed.length === 0) return 0
  const ids = sealed[0]!.item.id.map((_, column) => sealed.map(({ item }) => item.id[column]!))
  const values = [currentId, ...ids, sealed.map(({ item }) => item.was), sealed.map(({ bytes }) => bytes)]
  try {
    const put = await committed(pool, LIMITS.statementMaxMs, (client) =>
      client.query(PUT[shelf](schema), values),
    )
    return put.rows.length
  } catch (error) {
    if (classify(error) !== 'lock_wait') throw error
    // One row that a transaction holds must not keep the others.
    if (sealed.length === 1) return 0
    const middle = Math.ceil(sealed.length / 2)
    const first = await putSealed(pool, schema, shelf, currentId, sealed.slice(0, middle))
    return first + (await putSealed(pool, schema, shelf, currentId, sealed.slice(middle)))
  }
}

const PUT: Readonly<Record<Shelf, (schema: string) => string>> = {
  replies: sql.resealReplies,
  inputs: sql.resealInputs,
  steps: sql.resealSteps,
  evidence: sql.resealEvidence,
  'webhook secrets': sql.resealWebhookSecrets,
}

interface ReadRow {
  readonly key: readonly string[]
  readonly owned: boolean
  readonly items: SealedPage['items']
}

// biome-ignore lint/suspicious/noExplicitAny: rows of our own statements, read column by column.
type Row = any

const READ: Readonly<Record<SealedTable, (row: Row) => ReadRow>> = {
  records: readRecord,
  evidence: ({ account, call_key, key_id, bytes }) => ({
    key: [account, call_key],
    owned: false,
    items:
      bytes === null
        ? []
        : [
            {
              shelf: 'evidence',
              item: {
                kind: 'bytes',
                name: `evidence about ${call_key} of ${account}`,
                id: [account, call_key],
                was: digestOf(bytes),
                place: evidencePlace(account, call_key),
                bytes,
                sealedBy: key_id,
              },
            },
          ],
  }),
  'webhook secrets': ({ account, endpoint, id, key_id, bytes }) => ({
    key: [account, endpoint, id],
    owned: false,
    items:
      bytes === null
        ? []
        : [
            {
              shelf: 'webhook secrets',
              item: {
                kind: 'bytes',
                name: `a secret of ${withPrefix('we', endpoint)} of ${account}`,
                id: [account, endpoint, id],
                was: digestOf(bytes),
                place: webhookSecretPlace(account, withPrefix('we', endpoint)),
                bytes,
                sealedBy: key_id,
              },
            },
          ],
  }),
}

function readRecord(row: Row): ReadRow {
  const { account, operation, key } = row
  const of: RecordId = { account, operation, key }
  const common = {
    name: `${account} ${operation} ${key}`,
    id: [account, operation, key, row.fence, row.attempt_id],
  }
  const items: SealedPage['items'][number][] = []
  if (row.reply_body !== null) {
    const reply: Reply = {
      status: row.reply_status,
      headers: JSON.parse(row.reply_headers),
      body: row.reply_not_kept ? null : row.reply_body,
      schema: row.reply_schema,
      sealedBy: row.reply_key_id,
    }
    items.push({
      shelf: 'replies',
      item: { ...common, kind: 'reply', was: digestOf(row.reply_body), of, reply },
    })
  }
  for (const [shelf, kind, bytes, sealedBy] of [
    ['inputs', 'input', row.input, row.input_key_id],
    ['steps', 'progress', row.progress, row.progress_key_id],
  ] as const) {
    if (bytes === null) continue
    const place: SealedPlace = { kind, id: of, beside: [] }
    items.push({ shelf, item: { ...common, kind: 'bytes', was: digestOf(bytes), place, bytes, sealedBy } })
  }
  const concerned = items.length > 0 && row.owned
  return { key: [account, operation, key], owned: concerned, items: concerned ? [] : items }
}

function digestOf(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
