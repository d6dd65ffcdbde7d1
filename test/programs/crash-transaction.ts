/**
 * Walks through every path of a protected transaction, and dies where ONLYONCE_CRASH_AT says. What it did is
 * read from the database afterwards.
 */
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { type PostgresTx, postgres } from '../../src/store/postgres/index.ts'
import { reportPoints } from '../../src/testing/index.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, RUN } = process.env as Record<string, string>
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 4 })
pool.on('error', () => {})
const once = onlyonce({
  store: postgres({ pool, pooler }),
  secret: 'a secret that all processes share.',
  crashPoint: reportPoints(),
})

const callOf = (name: string) => ({
  account: 'acct_1',
  operation: 'orders.create',
  key: `${name}-${RUN}`,
  input: { name },
})

const effect = (name: string) => async (tx: Pick<PostgresTx, 'query'>) => {
  await tx.query('INSERT INTO effects (key) VALUES ($1)', [`${name}-${RUN}`])
  return { name }
}

// A new key; the same again; one that fails and is retried; one that locks first; one inside a transaction.
await once.transaction(callOf('plain'), effect('plain'))
await once.transaction(callOf('plain'), effect('plain'))
const { rows } = await pool.query('SELECT 1 FROM onlyonce.records WHERE key = $1', [`failing-${RUN}`])
if (rows.length === 0) {
  await once
    .transaction(callOf('failing'), async (tx) => {
      await effect('failing')(tx)
      throw new Error('not this time')
    })
    .catch(() => {})
}
await once.transaction(callOf('failing'), effect('failing'))
await once.transaction({ ...callOf('exclusive'), exclusive: true }, effect('exclusive'))
const client = await pool.connect()
await client.query('BEGIN')
await once.within(client, callOf('within'), () => effect('within')(client))
await client.query('COMMIT')
client.release()
await once.close()
await pool.end()
