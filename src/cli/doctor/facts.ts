/** What `doctor` judges by: collected from the database, one question after the other. */
import type { PoolClient } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import type { KeyRing } from '../../core/ring.ts'
import type { Stuck } from '../../record/index.ts'
import type { Store } from '../../store/contract.ts'
import type { Lag } from '../../store/outbox.ts'
import { planMigrations } from '../../store/postgres/migrate.ts'
import {
  countOverdue,
  type KeyInUse,
  keysInUse,
  type SchemaFacts,
  type Server,
  surveySchema,
  surveyServer,
  surveySettings,
} from '../../store/postgres/survey.ts'
import { clockMs } from '../times.ts'

export interface Facts {
  readonly schema: string
  readonly server: Server
  readonly settings: ReadonlyMap<string, string>
  readonly migrations: MigrationFacts
  readonly inSchema: SchemaFacts
  /** Null where the tables cannot be read. */
  readonly content: Content | null
  readonly given: Given
}

export interface MigrationFacts {
  readonly state: 'up_to_date' | 'missing' | 'pending' | 'unknown'
  readonly pending: readonly string[]
  /** Why they could not be compared. */
  readonly trouble: string | null
}

export interface Content {
  readonly stuck: Stuck
  readonly overdue: number
  readonly lags: readonly Lag[]
  readonly keys: readonly KeyInUse[]
}

/** What the caller has told about the service. */
export interface Given {
  readonly pooler: 'none' | 'transaction'
  readonly poolSize: number | null
  readonly processes: number
  readonly secret: KeyRing | null
  readonly encryption: KeyRing | null
}

const SETTINGS = [
  'default_transaction_isolation',
  'default_transaction_read_only',
  'statement_timeout',
  'transaction_timeout',
  'idle_session_timeout',
  'max_connections',
  'superuser_reserved_connections',
  'reserved_connections',
  'synchronous_commit',
  'synchronous_standby_names',
  'fsync',
  'full_page_writes',
  'autovacuum',
] as const

export async function collect(
  client: PoolClient,
  store: Store<unknown>,
  schema: string,
  given: Given,
): Promise<Facts> {
  const server = await surveyServer(client, clockMs)
  const settings = await surveySettings(client, SETTINGS)
  const migrations = await migrationFacts(client, schema)
  const inSchema = await surveySchema(client, schema)
  const readable =
    migrations.state === 'up_to_date' &&
    inSchema.missingRights.every(({ missing }) => !missing.includes('SELECT'))
  const content = readable ? await contentOf(client, store, schema) : null
  return { schema, server, settings, migrations, inSchema, content, given }
}

async function migrationFacts(client: PoolClient, schema: string): Promise<MigrationFacts> {
  try {
    const { applied, pending } = await planMigrations(client, schema)
    const names = pending.map(({ name }) => name)
    const state = names.length === 0 ? 'up_to_date' : applied.length === 0 ? 'missing' : 'pending'
    return { state, pending: names, trouble: null }
  } catch (error) {
    if (!(error instanceof OnlyonceError)) throw error
    return { state: 'unknown', pending: [], trouble: error.message }
  }
}

async function contentOf(client: PoolClient, store: Store<unknown>, schema: string): Promise<Content> {
  return {
    stuck: await store.stuck(LIMITS.stuckAfterMs),
    overdue: await countOverdue(client, schema, LIMITS.stuckAfterMs),
    lags: (await store.outbox?.lag()) ?? [],
    keys: await keysInUse(client, schema),
  }
}
