import type { Pool, PoolClient } from 'pg'
import { LIMITS } from '../../core/limits.ts'

/**
 * Statements of an operator's in a transaction of their own, which the server ends when they take longer than this. At READ COMMITTED, also
 * where the session has another level: under a stricter one, a row that another process changes meanwhile would be an error in place of a
 * row that is passed over. A row that a transaction holds is waited for but a moment.
 */
export async function committed<T>(
  pool: Pool,
  maxMs: number,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  let failure: Error | undefined
  try {
    await client.query(
      `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = ${maxMs}; SET LOCAL lock_timeout = ${LIMITS.lockRowWaitMs}`,
    )
    const value = await work(client)
    await client.query('COMMIT')
    return value
  } catch (error) {
    await client.query('ROLLBACK').catch((cause) => {
      failure = cause as Error
    })
    throw error
  } finally {
    client.release(failure)
  }
}
