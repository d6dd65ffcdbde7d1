/** One of many processes that start at once against a database without a schema. */
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL } = process.env as Record<string, string>
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 2 })
const once = onlyonce({
  store: postgres({ pool, pooler, schema: 'payments_once' }),
  secret: 'a secret that all share.'.repeat(2),
})
await once.start()
const { outcome } = await once.transaction(
  { account: 'a', operation: 'o', key: `key-of-${process.pid}` },
  async (tx) => {
    await tx.query('SELECT 1')
    return 1
  },
)
process.stdout.write(outcome)
await once.close()
await pool.end()
