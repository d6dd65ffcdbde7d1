import { createHash } from 'node:crypto'
import type { Pool, PoolClient } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { refuseUnknown } from '../../core/options.ts'
import type { Queryable } from '../contract.ts'
import { isAway, sqlState } from './classify.ts'
import { hearPool } from './hear.ts'
import { type Migration, readMigrations, shippedMigrations } from './migration-files.ts'
import { checkSchema, oneOf } from './options.ts'
import { COMPLETE_LEDGER, CREATE_LEDGER, FIND_SCHEMA, INSERT_LEDGER } from './sql/ledger.ts'
import { startTrouble, troubleDetail } from './trouble.ts'
import { plainText, wholeNumber } from './type-parsers.ts'

export interface MigrateOptions {
  /** The schema that the migrations are for. It is made where it is missing, and is their `search_path`. */
  readonly schema: string
  /** `apply` brings the schema up to date, `verify` only checks that it is, and only reads. */
  readonly mode: 'apply' | 'verify'
  /**
   * A folder of your own, as a URL (`new URL('./migrations/', import.meta.url)`), with files named `0001_name.sql`; by default the migrations of the library. A file may begin with the line
   * `-- requires: <version>`: a process that does not know this version refuses the schema once the file was applied. Without
   * the line, files that only a newer process knows are no trouble for an older one.
   *
   * @default the migrations of the library
   */
  readonly folder?: URL
  /**
   * The number of the last migration to apply, or to check for; by default all of them. Nothing is ever taken back.
   *
   * @default all of them
   */
  readonly to?: number
}

/** What `migrate` has done. */
export interface Migrated {
  /** The names of the migrations that this call applied, in order; none where the schema was up to date. */
  readonly applied: readonly string[]
}

interface Applied {
  readonly version: number
  readonly name: string
  readonly checksum: string
  readonly requires: number
}

/**
 * Brings a schema up to date, or checks that it is.
 *
 * Any number of processes may call it at once: one applies, the others wait for it and find the work done. All of it is one
 * transaction, so a process that dies half-way leaves nothing. A file that was applied must not change afterwards. Throws
 * `store_unavailable` where the database cannot be reached, and `store_misconfigured` where only a person can change that it cannot be
 * used; both say why in a sentence.
 *
 * @example
 * const { applied } = await migrate(pool, { schema: 'shop', mode: 'apply', folder: new URL('./migrations/', import.meta.url) })
 */
export async function migrate(on: Pool | Queryable, options: MigrateOptions): Promise<Migrated> {
  refuseUnknown('migrate()', options, { schema: true, mode: true, folder: true, to: true })
  const schema = checkSchema(options.schema)
  const mode = oneOf('mode', options.mode, ['apply', 'verify'])
  const { folder } = options
  if (folder !== undefined && typeof folder?.href !== 'string') {
    throw new OnlyonceError('option_invalid', {
      detail: "folder must be a URL, such as new URL('./migrations/', import.meta.url).",
    })
  }
  try {
    const migrations = folder === undefined ? shippedMigrations() : await readMigrations(folder)
    checkTo(options.to, migrations)
    const wanted: Wanted = { schema, migrations, to: options.to ?? Number.POSITIVE_INFINITY }
    const applied = await withClient(on, (client) => bringUp(client, wanted, mode))
    return { applied: applied.map(({ name }) => name) }
  } catch (error) {
    throw startTrouble(error)
  }
}

/** Which migrations, in which schema, and up to which. */
interface Wanted {
  readonly schema: string
  readonly migrations: readonly Migration[]
  readonly to: number
}

function checkTo(to: number | undefined, migrations: readonly Migration[]): void {
  if (to === undefined || migrations.some(({ version }) => version === to)) return
  throw new OnlyonceError('option_invalid', {
    detail: `to is the number of a migration, from 1 to ${migrations.at(-1)?.version ?? 0}.`,
  })
}

/** What was applied to a schema, and what is still to come, of the library's own migrations. */
export interface MigrationPlan {
  /** Whether there is such a schema at all. */
  readonly schemaThere: boolean
  readonly applied: readonly string[]
  readonly pending: readonly Migration[]
}

/** Looks, and changes nothing. Throws where what was applied is not what is shipped, as `migrate` does. */
export async function planMigrations(on: Pool | Queryable, schema: string): Promise<MigrationPlan> {
  checkSchema(schema)
  try {
    return await withClient(on, async (client) => {
      const ledger = await readLedger(client, schema)
      const { rows } = await client.query(FIND_SCHEMA, [schema])
      const pending = pendingOf(shippedMigrations(), ledger)
      return { schemaThere: rows.length > 0, applied: ledger.map(({ name }) => name), pending }
    })
  } catch (trouble) {
    throw startTrouble(trouble)
  }
}

/** Whether there is nothing to apply of the library's own. Reads twice, writes nothing, takes no lock. */
export async function isMigrated(client: Queryable, schema: string): Promise<boolean> {
  return pendingOf(shippedMigrations(), await readLedger(client, schema)).length === 0
}

async function bringUp(
  client: Queryable,
  wanted: Wanted,
  mode: MigrateOptions['mode'],
): Promise<readonly Migration[]> {
  const { schema, migrations } = wanted
  const pending = await readPending(client, wanted)
  if (pending.length === 0) return []
  if (mode === 'verify') {
    throw new OnlyonceError(pending.length === migrations.length ? 'schema_missing' : 'schema_outdated', {
      detail: `Schema ${schema} lacks ${pending.map((m) => m.name).join(', ')}.`,
    })
  }
  // Not at the level that the session has: a snapshot that is older than the wait for the lock would show the ledger as it was
  // before, and the migrations would be applied twice.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  try {
    const applied = await applyPending(client, wanted)
    await client.query('COMMIT')
    return applied
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

async function readPending(
  client: Queryable,
  { schema, migrations, to }: Wanted,
): Promise<readonly Migration[]> {
  return pendingOf(migrations, await readLedger(client, schema)).filter(({ version }) => version <= to)
}

async function applyPending(client: Queryable, wanted: Wanted): Promise<readonly Migration[]> {
  const { schema } = wanted
  await client.query(`SET LOCAL lock_timeout = ${LIMITS.migrationWaitMaxMs}`)
  // The lock comes before the ledger is read again: a process that waited here finds the work done.
  await client.query('SELECT pg_advisory_xact_lock($1::bigint)', [lockOf(schema)])
  const pending = await readPending(client, wanted)
  if (pending.length === 0) return []
  // Not IF NOT EXISTS: that asks for the right to create schemas even where one is there already.
  const { rows } = await client.query(FIND_SCHEMA, [schema])
  if (rows.length === 0) await client.query(`CREATE SCHEMA ${schema}`)
  await client.query(`SET LOCAL search_path TO ${schema}`)
  await client.query(CREATE_LEDGER)
  await client.query(COMPLETE_LEDGER)
  for (const { version, name, text, checksum, requires } of pending) {
    await client.query(text)
    await client.query(INSERT_LEDGER, [version, name, checksum, requires])
  }
  return pending
}

/** What is still to be applied, after checking that what was applied is what we know. */
function pendingOf(migrations: readonly Migration[], ledger: readonly Applied[]): readonly Migration[] {
  const newestKnown = migrations.at(-1)?.version ?? 0
  const applied = new Map(ledger.map((entry) => [entry.version, entry]))
  const newest = ledger.at(-1)
  for (const { requires, name } of ledger) {
    if (requires > newestKnown) {
      throw new OnlyonceError('schema_too_new', {
        detail: `It has migration ${name}; this version knows up to ${newestKnown}.`,
      })
    }
  }
  return migrations.filter(({ version, name, checksum }) => {
    const known = applied.get(version)
    if (known !== undefined && known.checksum !== checksum) {
      throw new OnlyonceError('schema_changed', {
        detail: `Migration ${name} is not what was applied as ${known.name}. Put the file back as it was, and make the change in a new one.`,
      })
    }
    if (known === undefined && newest !== undefined && version < newest.version) {
      throw new OnlyonceError('option_invalid', {
        detail: `Migration ${name} comes too late: ${newest.name} was applied before it. Give it the next number.`,
      })
    }
    return known === undefined
  })
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
  const ledger = await client.query(`SELECT * FROM ${schema}.migrations ORDER BY version`).catch((error) => {
    throw sqlState(error) === '42501' ? mayNotRead(schema, error) : error
  })
  return ledger.rows.map(({ version, name, checksum, requires = 1 }) => ({
    version: wholeNumber(version, 'integers'),
    name: plainText(name),
    checksum: plainText(checksum),
    requires: wholeNumber(requires, 'integers'),
  }))
}

function mayNotRead(schema: string, cause: unknown): OnlyonceError {
  const detail = `The role of this process lacks a right: USAGE on the schema ${schema}, or SELECT on ${schema}.migrations (42501).`
  return new OnlyonceError('store_misconfigured', { detail, cause })
}

export function lockOf(schema: string): string {
  return createHash('sha256').update(`onlyonce/migrate/${schema}`).digest().readBigInt64BE(0).toString()
}

/** One connection for all of it; a pool would give each statement to another. One that failed is not given back as sound. */
async function withClient<T>(on: Pool | Queryable, work: (client: Queryable) => Promise<T>): Promise<T> {
  if (!isPool(on)) return await work(on)
  hearPool(on)
  let client: PoolClient | undefined
  try {
    client = await on.connect()
    const done = await work(client)
    client.release()
    return done
  } catch (error) {
    client?.release(true)
    if (error instanceof OnlyonceError || !isAway(error)) throw error
    const detail = troubleDetail(error)
    throw new OnlyonceError('store_unavailable', { cause: error, ...(detail !== undefined && { detail }) })
  }
}

function isPool(on: Pool | Queryable): on is Pool {
  return 'idleCount' in on && 'connect' in on
}
