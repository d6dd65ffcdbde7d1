/** Runs a handler, and dies where ONLYONCE_CRASH_AT says. Comes back until the key is not in progress any more. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
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

for (const rerunnable of [true, false]) {
  const key = `${rerunnable ? 'rerunnable' : 'plain'}-${RUN}`
  const call = {
    account: 'acct_1',
    operation: 'orders.create',
    key,
    input: { rerunnable },
    leaseMs: 200,
    rerunnable,
  }
  const run = () =>
    once.execute(call, async () => {
      await pool.query('INSERT INTO effects (key) VALUES ($1)', [key])
    })
  while ((await run()).outcome === 'in_progress') await sleep(20)
}
await once.close()
await pool.end()
