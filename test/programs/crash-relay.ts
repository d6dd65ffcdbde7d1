/**
 * Emits events and stages jobs once, relays all of them, and dies where ONLYONCE_CRASH_AT says. What was delivered is
 * read from the database afterwards.
 */
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { type OutboxEvent, outbox, relay } from '../../src/outbox/index.ts'
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
const { emit, stage, lag } = outbox(once)
await once.start()

const { rows } = await pool.query('SELECT 1 FROM onlyonce.aggregates WHERE account = $1', [RUN])
if (rows.length === 0) {
  const tx = await pool.connect()
  await tx.query('BEGIN')
  const numbers = Array.from({ length: 30 }, (_, n) => n)
  await emit(
    tx,
    numbers.map((n) => ({ account: RUN!, type: 't', payload: n, aggregate: `a:${n % 6}` })),
  )
  await stage(
    tx,
    numbers.slice(0, 5).map((n) => ({ account: RUN!, job: 'count', payload: n, key: `${n}` })),
  )
  await tx.query('COMMIT')
  tx.release()
}
// Whoever was here before is dead: as if the time of its leases had passed.
await pool.query('UPDATE onlyonce.cursors SET lease_until = clock_timestamp() WHERE lease_until IS NOT NULL')
await pool.query('UPDATE onlyonce.jobs SET lease_until = clock_timestamp() WHERE lease_until IS NOT NULL')

const deliver = (to: string) => async (events: readonly OutboxEvent[]) => {
  for (const { account, id, aggregate, sequence } of events) {
    await pool.query(
      'INSERT INTO deliveries (destination, account, id, aggregate, sequence) VALUES ($1, $2, $3, $4, $5)',
      [to, account, id, aggregate, sequence],
    )
  }
}
const worker = relay(once, {
  destinations: { ledger: deliver('ledger'), search: deliver('search') },
  jobs: {
    count: async ({ account, payload }) => {
      await pool.query('INSERT INTO effects (account, n) VALUES ($1, $2)', [account, payload])
    },
  },
  publishMax: 64,
})
const isLeft = async () => {
  const waiting = await pool.query('SELECT 1 FROM onlyonce.jobs WHERE run_at IS NOT NULL')
  return waiting.rows.length > 0 || (await lag()).some(({ count }) => count > 0)
}
while (await isLeft()) await worker.runOnce()
await worker.drain()
await once.close()
await pool.end()
