import type pg from 'pg'
import { freshDatabase } from '../../../test/setup/database.ts'
import { migrate } from '../database/migrate.ts'

export const ACCOUNT = 'acct_one:test'
export const OTHER = 'acct_two:test'

/** A database with the tables of the service. */
export async function openLedger(options: pg.PoolConfig = {}): Promise<pg.Pool> {
  const pool = (await freshDatabase()).pool(options)
  await migrate(pool)
  return pool
}

/** One transaction on a connection of its own. */
export async function transact<T>(
  pool: pg.Pool,
  work: (tx: pg.PoolClient) => Promise<T>,
  begin = 'BEGIN',
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query(begin)
    const value = await work(client)
    await client.query('COMMIT')
    return value
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

/** Without any trigger or foreign key, as whoever owns the database could. */
export async function corrupt(tx: pg.PoolClient, text: string): Promise<void> {
  await tx.query('SET LOCAL session_replication_role = replica')
  await tx.query(text)
  await tx.query('SET LOCAL session_replication_role = DEFAULT')
}

/** What can be seen in a transaction that is rolled back: all that is wrong in it is gone with it. */
export async function rolledBack<T>(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    return await work(client)
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}
