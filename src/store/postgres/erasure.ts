/** Erasing an account, page by page. */
import type { Pool, PoolClient } from 'pg'
import { LIMITS } from '../../core/limits.ts'
import { classify } from './classify.ts'
import { committed } from './committed.ts'
import * as sql from './sql/erasure.ts'

/** Which records of an account: all of them, those of an operation, or that of one key. */
export interface ErasureScope {
  readonly account: string
  readonly operation: string | null
  readonly key: string | null
}

/** Records of a scope, by what an erasure makes of them. */
export interface ErasureCount {
  /** Tombstones already. */
  readonly erased: number
  readonly erasable: number
  /** Not finished: they are left. */
  readonly inProgress: number
  readonly unknown: number
  readonly parked: number
  /** Operations that may go on behind durable steps until their retention ends. */
  readonly retryable: number
}

export interface ErasedPage {
  readonly erased: number
  /** Where the next page begins; null where it was the last. */
  readonly after: readonly [operation: string, key: string] | null
}

export async function countToErase(pool: Pool, schema: string, scope: ErasureScope): Promise<ErasureCount> {
  const values = [scope.account, scope.operation, scope.key]
  const { rows } = await committed(pool, LIMITS.surveyMaxMs, (client) =>
    client.query(sql.countToErase(schema), values),
  )
  const { erased, erasable, in_progress, unknown, parked, retryable } = rows[0]
  return { erased, erasable, inProgress: in_progress, unknown, parked, retryable }
}

/** Whose erasure it is, of what, and how many records at once. */
export interface EraseStep {
  readonly schema: string
  readonly scope: ErasureScope
  readonly by: string
  readonly why: string
}

/** One page, in one commit: tombstones, their entries in the audit, and the end of their history. */
export async function erasePage(
  pool: Pool,
  step: EraseStep,
  after: ErasedPage['after'],
  limit: number = LIMITS.erasePageMax,
): Promise<ErasedPage> {
  try {
    return await committed(pool, LIMITS.statementMaxMs, (client) => eraseNext(client, step, after, limit))
  } catch (error) {
    if (classify(error) !== 'lock_wait') throw error
    // A record that a transaction holds must not keep the others: it is passed over when it is alone.
    if (limit > 1) return await erasePage(pool, step, after, Math.ceil(limit / 2))
    const held = await committed(pool, LIMITS.statementMaxMs, (client) => findNext(client, step, after, 1))
    return { erased: 0, after: behind(held, 1) }
  }
}

async function eraseNext(
  client: PoolClient,
  step: EraseStep,
  after: ErasedPage['after'],
  limit: number,
): Promise<ErasedPage> {
  const found = await findNext(client, step, after, limit)
  const due = found.filter(({ verdict }) => verdict === 'erasable')
  if (due.length === 0) return { erased: 0, after: behind(found, limit) }
  const named = COLUMNS.map((name) => due.map((row) => row[name]))
  const values = [step.scope.account, step.by, step.why, ...named]
  const { rows } = await client.query(sql.eraseRecords(step.schema), values)
  return { erased: rows.length, after: behind(found, limit) }
}

const COLUMNS = ['operation', 'key', 'state', 'fence', 'attempt_id'] as const
type Found = Readonly<Record<(typeof COLUMNS)[number] | 'verdict', string>>

async function findNext(
  client: PoolClient,
  { schema, scope }: EraseStep,
  after: ErasedPage['after'],
  limit: number,
): Promise<readonly Found[]> {
  const { account, operation, key } = scope
  const asked = [account, operation, key, ...(after ?? ['', '']), limit]
  return (await client.query<Found>(sql.pageToErase(schema), asked)).rows
}

function behind(found: readonly Found[], limit: number): ErasedPage['after'] {
  const last = found.length === limit ? found.at(-1) : undefined
  return last === undefined ? null : [last.operation, last.key]
}

/** What is kept of an account beside its records, and is gone with it. */
export interface Leftovers {
  readonly evidence: number
  readonly webhookMessages: number
  readonly webhookEndpoints: number
  readonly jobs: number
  /** Removed by the relay, a while after they were delivered everywhere. */
  readonly events: number
}

const BESIDE = [sql.eraseEvidence, sql.eraseWebhookMessages, sql.eraseWebhookEndpoints, sql.eraseJobs]

/** One bounded batch of what stands beside the records; how many rows went. */
export async function eraseBeside(pool: Pool, schema: string, account: string): Promise<number> {
  let count = 0
  for (const erase of BESIDE) {
    const { rows } = await committed(pool, LIMITS.statementMaxMs, (client) =>
      client.query(erase(schema), [account, LIMITS.erasePageMax]),
    )
    count += rows.length
  }
  return count
}

export async function countLeftovers(pool: Pool, schema: string, account: string): Promise<Leftovers> {
  const { rows } = await committed(pool, LIMITS.surveyMaxMs, (client) =>
    client.query(sql.countLeftovers(schema), [account]),
  )
  const { evidence, webhook_messages, webhook_endpoints, jobs, events } = rows[0]
  return { evidence, webhookMessages: webhook_messages, webhookEndpoints: webhook_endpoints, jobs, events }
}
