import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/store/embedded/index.ts'

/** The lock makes processes that start at once take turns: IF NOT EXISTS alone does not. */
const TABLES = `
SELECT pg_advisory_xact_lock(4711);

CREATE TABLE IF NOT EXISTS accounts (
  customer text NOT NULL,
  name     text NOT NULL,
  balance  bigint NOT NULL CHECK (balance >= 0),
  PRIMARY KEY (customer, name)
);

CREATE TABLE IF NOT EXISTS transfers (
  customer   text NOT NULL,
  id         uuid NOT NULL,
  debited    text NOT NULL,
  credited   text NOT NULL,
  amount     bigint NOT NULL CHECK (amount > 0),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (customer, id),
  FOREIGN KEY (customer, debited) REFERENCES accounts,
  FOREIGN KEY (customer, credited) REFERENCES accounts
);

INSERT INTO accounts (customer, name, balance)
VALUES ('acme', 'alice', 100000), ('acme', 'bob', 0), ('globex', 'alice', 100000), ('globex', 'bob', 0)
ON CONFLICT DO NOTHING`

export interface Database {
  readonly pool: pg.Pool
  close(): Promise<void>
}

/** The database in DATABASE_URL, or else a PostgreSQL of its own in the folder. */
export async function openDatabase(folder: string): Promise<Database> {
  const givenUrl = process.env.DATABASE_URL
  const server = givenUrl ? null : await startEmbeddedPostgres({ folder })
  const pool = new pg.Pool({ connectionString: server?.url ?? givenUrl })
  // An idle connection that breaks is replaced at its next use; unheard, the event would end the process.
  pool.on('error', (error) => console.error(`A database connection was lost: ${error.message}`))
  await pool.query(TABLES)
  return {
    pool,
    async close() {
      await pool.end()
      await server?.stop()
    },
  }
}

/**
 * The secret in ONLYONCE_SECRET, or else one that is made at the first start. It has to stay the same: with
 * another one, no retry of a stored request could be recognised.
 */
export async function readSecret(folder: string): Promise<string> {
  if (process.env.ONLYONCE_SECRET) return process.env.ONLYONCE_SECRET
  const file = join(folder, 'onlyonce-secret')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(file, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' }).catch((error) => {
    if (error.code !== 'EEXIST') throw error
  })
  return await readFile(file, 'utf8')
}
