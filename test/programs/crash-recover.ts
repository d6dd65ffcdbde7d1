/**
 * Leaves handlers behind whose owner is gone, and looks after them, and dies where ONLYONCE_CRASH_AT says. Run again, it looks
 * after whatever is left until nothing is.
 */
import pg from 'pg'
import { onlyonce, type Recover } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { reportPoints } from '../../src/testing/index.ts'
import { recoverer } from '../../src/workers/index.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, RUN } = process.env as Record<string, string>
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 4 })
pool.on('error', () => {})
const store = () => postgres({ pool, pooler })
const secret = 'a secret that all processes share.'

/** What the other side knows of each order, by the key that it was given. */
const recover: Recover = async ({ operation, key, derivedKey }) => {
  await pool.query('INSERT INTO asked (key) VALUES ($1)', [key])
  if (operation === 'orders.void') return { status: 'void' }
  const { rows } = await pool.query('SELECT FROM effects WHERE key = $1', [derivedKey])
  return rows.length > 0 ? { status: 'found', value: 'found' } : { status: 'cannot_tell' }
}
const recovers = { 'orders.found': recover, 'orders.void': recover, 'orders.lost': recover }

// The owners: claimed, at work, and silent.
const owners = onlyonce({ store: store(), secret, recover: recovers, background: false })
for (const operation of ['orders.found', 'orders.void', 'orders.lost', 'orders.plain']) {
  const key = `${operation}-${RUN}`
  const { rows } = await pool.query('SELECT FROM effects WHERE note = $1', [key])
  if (rows.length > 0) continue
  await new Promise<void>((begun) => {
    void owners
      .execute({ account: 'acct_1', operation, key, input: 1, leaseMs: 600_000 }, async ({ derivedKey }) => {
        const reference = operation === 'orders.lost' ? `unseen-${key}` : derivedKey
        await pool.query('INSERT INTO effects (key, note) VALUES ($1, $2)', [reference, key])
        begun()
        await new Promise(() => {})
      })
      .catch(() => {})
  })
}
await pool.query(
  `UPDATE onlyonce.records SET lease_until = clock_timestamp() - interval '1 minute', attempted_at = attempted_at - interval '1 hour'
   WHERE key LIKE '%' || $1 AND state = 'in_progress'`,
  [RUN],
)

const once = onlyonce({
  store: store(),
  secret,
  recover: recovers,
  background: false,
  graceMs: 1,
  reconcileAfterMs: [1],
  crashPoint: reportPoints(),
  // What is parked on purpose here is a warning of the process without an observer.
  observe: { signal() {} },
})
const worker = recoverer(once, { atOnce: 1 })
const open = async () => {
  // A look that a process was killed in is held for a while; the clock of the database is not waited for.
  await pool.query(
    `UPDATE onlyonce.records SET look_at = clock_timestamp() WHERE key LIKE '%' || $1 AND state = 'unknown'`,
    [RUN],
  )
  const { rows } = await pool.query(
    `SELECT FROM onlyonce.records WHERE key LIKE '%' || $1 AND state IN ('in_progress', 'unknown')`,
    [RUN],
  )
  return rows.length > 0
}
while (await open()) await worker.runOnce()
await once.close()
await pool.end()
process.exit(0)
