/**
 * Emits events once, fans them out and posts them to the endpoint at URL, and dies where ONLYONCE_CRASH_AT says. What was
 * delivered is known to the receiver, which lives elsewhere.
 */
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { outbox, relay } from '../../src/outbox/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { reportPoints } from '../../src/testing/index.ts'
import { webhooks } from '../../src/webhooks/index.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, RUN, POINTS, URL: url } = process.env as Record<string, string>
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 4 })
pool.on('error', () => {})
const report = reportPoints()
const points = new Set(POINTS!.split(','))
const once = onlyonce({
  store: postgres({ pool, pooler }),
  secret: 'a secret that all processes share.',
  // Those of the relay have a test of their own.
  crashPoint: (point) => void (points.has(point) && report(point)),
})
const hooks = webhooks(once, { allowPrivate: true })
const office = relay(once, { destinations: { webhooks: hooks.destination } })
const worker = hooks.deliverer()
await hooks.endpoints.create({ account: RUN!, url: url! })
const tx = await pool.connect()
await tx.query('BEGIN')
const numbers = Array.from({ length: 6 }, (_, n) => n)
await outbox(once).emit(
  tx,
  numbers.map((n) => ({ account: RUN!, type: 't', payload: n })),
)
await tx.query('COMMIT')
tx.release()
while ((await office.runOnce()).more);
await office.drain()
while ((await worker.runOnce()).more);
await worker.drain()
await once.close()
await pool.end()
