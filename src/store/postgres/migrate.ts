import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { OnlyonceError } from '../../errors.ts'
import { LIMITS } from '../../limits.ts'
import { refuseUnknown } from '../../options.ts'
import type { Queryable } from '../contract.ts'
import { checkSchema } from './options.ts'

/** The migrations stand beside src/ and dist/ alike. */
const FOLDER = new URL('../../../migrations/', import.meta.url)

interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  readonly checksum: string
  /** The newest migration that a process has to know to work with a schema that has this one. */
  readonly requires: number
}

interface Applied {
  readonly version: number
  readonly name: string
  readonly checksum: string
  readonly requires: number
}

/**
 * Brings the schema up to date (`apply`), or checks that it is (`verify`, which only reads).
 *
 * Any number of processes may call it at once: one applies, the others wait for it. All of it is one
 * transaction, so a process that dies half-way leaves nothing.
 *
 * @example
 * await migrate(client, { schema: 'onlyonce', mode: 'apply' })
 */
export async function migrate(
  client: Queryable,
  options: { readonly schema: string; readonly mode: 'apply' | 'verify'; readonly folder?: URL },
): Promise<void> {
  refuseUnknown('migrate()', options, { schema: true, mode: true, folder: true })
  const schema = checkSchema(options.schema)
  const migrations = await readMigrations(options.folder ?? FOLDER)
  const pending = pendingOf(migrations, await readLedger(client, schema))
  if (pending.length === 0) return
  if (options.mode === 'verify') {
    throw new OnlyonceError(pending.length === migrations.length ? 'schema_missing' : 'schema_outdated', {
      detail: `Schema ${schema} lacks ${pending.map((m) => m.name).join(', ')}.`,
    })
  }
  await client.query('BEGIN')
  try {
    await applyPending(client, schema, migrations)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/** Whether there is nothing to apply. Reads twice, writes nothing, takes no lock. */
export async function isMigrated(client: Queryable, schema: string): Promise<boolean> {
  const migrations = await readMigrations(FOLDER)
  return pendingOf(migrations, await readLedger(client, schema)).length === 0
}

async function applyPending(
  client: Queryable,
  schema: string,
  migrations: readonly Migration[],
): Promise<void> {
  await client.query(`SET LOCAL lock_timeout = ${LIMITS.migration_wait_max_ms}`)
  // The lock comes before the ledger is read again: whoever waited here finds the work done.
  await client.query('SELECT pg_advisory_xact_lock($1::bigint)', [lockOf(schema)])
  const pending = pendingOf(migrations, await readLedger(client, schema))
  if (pending.length === 0) return
  // Not IF NOT EXISTS: that asks for the right to create schemas even where one is there already.
  const { rows } = await client.query('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [schema])
  if (rows.length === 0) await client.query(`CREATE SCHEMA ${schema}`)
  await client.query(`SET LOCAL search_path TO ${schema}`)
  await client.query(`CREATE TABLE IF NOT EXISTS migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    requires   integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`)
  for (const { version, name, text, checksum, requires } of pending) {
    await client.query(text)
    await client.query('INSERT INTO migrations (version, name, checksum, requires) VALUES ($1, $2, $3, $4)', [
      version,
      name,
      checksum,
      requires,
    ])
  }
}

/** What is still to be applied, after checking that what was applied is what we know. */
function pendingOf(migrations: readonly Migration[], ledger: readonly Applied[]): readonly Migration[] {
  const newest = migrations.length
  for (const applied of ledger) {
    if (applied.requires > newest) {
      throw new OnlyonceError('schema_too_new', {
        detail: `It has migration ${applied.name}; this version knows up to ${newest}.`,
      })
    }
    const known = migrations[applied.version - 1]
    if (known !== undefined && known.checksum !== applied.checksum) {
      throw new OnlyonceError('schema_changed', { detail: `See migration ${applied.name}.` })
    }
  }
  const versions = new Set(ledger.map((applied) => applied.version))
  return migrations.filter((migration) => !versions.has(migration.version))
}

/**
 * Asks the catalog's tables, not to_regclass: that answers from a cache, and in a transaction that waited for
 * the lock the cache still says that there is no such schema.
 */
async function readLedger(client: Queryable, schema: string): Promise<readonly Applied[]> {
  const { rows } = await client.query(
    `SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'migrations'`,
    [schema],
  )
  if (rows.length === 0) return []
  const ledger = await client.query(
    `SELECT version, name, checksum, requires FROM ${schema}.migrations ORDER BY version`,
  )
  return ledger.rows
}

/** Files are named 0001_name.sql, without a gap, and begin with the line `-- requires: <version>`. */
async function readMigrations(folder: URL): Promise<readonly Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name, i) => {
      const text = await readFile(new URL(name, folder), 'utf8')
      const version = Number(name.slice(0, 4))
      const requires = Number(/^-- requires: (\d+)\n/.exec(text)?.[1])
      if (version !== i + 1 || !(requires >= 1 && requires <= version)) {
        throw new OnlyonceError('option_invalid', {
          detail: `Migration ${name} is misnamed or lacks its header.`,
        })
      }
      return { version, name, text, requires, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

function lockOf(schema: string): string {
  return createHash('sha256').update(`onlyonce/migrate/${schema}`).digest().readBigInt64BE(0).toString()
}
