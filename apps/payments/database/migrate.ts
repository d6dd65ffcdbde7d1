import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { Queryable } from 'onlyonce'
import type pg from 'pg'

const FOLDER = new URL('../migrations/', import.meta.url)

/** How long a process waits for another one that migrates. */
const MIGRATION_WAIT_MAX_MS = 120_000

/** Of the advisory lock: any number that the library's own runner, which hashes a name, does not hit. */
const LOCK = '7020384652110497283'

interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  readonly checksum: string
}

type Applied = Omit<Migration, 'text'>

/**
 * Brings the schema `payments` up to date. Any number of processes may call it at once: one applies, the others wait for
 * it and find the work done. All of it is one transaction, so a process that dies half-way leaves nothing.
 *
 * A file that was applied must not change afterwards: what is wrong in it is put right by the next file. Files that only a
 * newer version of the service knows are no error, or that version could not be rolled out beside this one.
 *
 * @example
 * await migrate(pool)
 */
export async function migrate(pool: pg.Pool, options: { readonly folder?: URL } = {}): Promise<void> {
  const migrations = await readMigrations(options.folder ?? FOLDER)
  const client = await pool.connect()
  let broken = false
  try {
    if (pendingOf(migrations, await readLedger(client)).length === 0) return
    // Not what the session has: a snapshot that is older than the wait for the lock would show the ledger as it was before.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
    try {
      await applyPending(client, migrations)
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {
        broken = true
      })
      throw error
    }
  } finally {
    client.release(broken)
  }
}

async function applyPending(client: Queryable, migrations: readonly Migration[]): Promise<void> {
  await client.query(`SET LOCAL lock_timeout = ${MIGRATION_WAIT_MAX_MS}`)
  // The lock comes before the ledger is read again: whoever waited here finds the work done.
  await client.query('SELECT pg_advisory_xact_lock($1::bigint)', [LOCK])
  const pending = pendingOf(migrations, await readLedger(client))
  if (pending.length === 0) return
  // Not IF NOT EXISTS: that asks for the right to create schemas even where one is there already.
  const { rows } = await client.query(`SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'payments'`)
  if (rows.length === 0) await client.query('CREATE SCHEMA payments')
  await client.query('SET LOCAL search_path TO payments')
  await client.query(`CREATE TABLE IF NOT EXISTS payments.migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`)
  for (const { version, name, text, checksum } of pending) {
    await client.query(text)
    await client.query('INSERT INTO payments.migrations (version, name, checksum) VALUES ($1, $2, $3)', [
      version,
      name,
      checksum,
    ])
  }
}

/** What is still to be applied, after checking that what was applied is what we know. */
function pendingOf(migrations: readonly Migration[], ledger: readonly Applied[]): readonly Migration[] {
  const applied = new Map(ledger.map((entry) => [entry.version, entry]))
  const newest = Math.max(0, ...applied.keys())
  return migrations.filter(({ version, name, checksum }) => {
    const known = applied.get(version)
    if (known === undefined && version < newest) {
      throw new Error(`Migration ${name} comes too late: ${applied.get(newest)?.name} was applied before it.`)
    }
    if (known !== undefined && known.checksum !== checksum) {
      throw new Error(
        `Migration ${name} is not what was applied to this database as ${known.name}. Put the file back as it was, and make the change in a new one.`,
      )
    }
    return known === undefined
  })
}

/**
 * Asks the catalog's tables, not to_regclass: that answers from a cache, and in a transaction that waited for the lock the
 * cache still says that there is no such schema.
 */
async function readLedger(client: Queryable): Promise<readonly Applied[]> {
  const { rows } = await client.query(
    `SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'payments' AND tablename = 'migrations'`,
  )
  if (rows.length === 0) return []
  const ledger = await client.query(
    'SELECT version, name, checksum FROM payments.migrations ORDER BY version',
  )
  return ledger.rows
}

/** Files are named 0001_name.sql. */
async function readMigrations(folder: URL): Promise<readonly Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  const migrations = await Promise.all(
    names.map(async (name) => {
      // Checked out on Windows, or not: the same migration.
      const text = (await readFile(new URL(name, folder), 'utf8')).replaceAll('\r\n', '\n')
      const version = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1])
      return { version, name, text, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
  for (const [i, { version, name }] of migrations.entries()) {
    if (!(version > (migrations[i - 1]?.version ?? 0))) {
      throw new Error(`Migration ${name} is misnamed: 0001_name.sql, each number once.`)
    }
  }
  return migrations
}
