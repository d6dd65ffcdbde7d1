import type pg from 'pg'
import { type PostgresOptions, postgres } from '../../src/store/postgres/index.ts'
import type { StoreUnderTest } from '../../src/testing/index.ts'

/** The PostgreSQL store on a pool, as the suite of stores wants it. */
export function postgresUnderTest(
  pool: pg.Pool,
  options: Omit<PostgresOptions, 'pool' | 'connectionString'> = {},
): StoreUnderTest {
  return {
    store: postgres({ pool, ...options }),
    async begin() {
      const client = await pool.connect()
      await client.query('BEGIN')
      const end = (text: string) => async () => {
        await client.query(text)
        client.release()
      }
      return { tx: client, commit: end('COMMIT'), rollback: end('ROLLBACK') }
    },
  }
}
