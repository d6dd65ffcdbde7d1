import type { Queryable } from 'onlyonce'
import type pg from 'pg'

/** One transaction on a connection of its own. One that fails is not given back: its state is not known. */
export async function inTransaction<T>(pool: pg.Pool, work: (tx: Queryable) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
    const value = await work(client)
    await client.query('COMMIT')
    client.release()
    return value
  } catch (error) {
    client.release(error as Error)
    throw error
  }
}
