import { randomUUID } from 'node:crypto'
import { serve } from '@hono/node-server'
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { ordersApp } from './app.ts'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
await pool.query(
  'CREATE TABLE IF NOT EXISTS orders (customer text, id uuid, item text NOT NULL, PRIMARY KEY (customer, id))',
)
const once = onlyonce({ store: postgres({ pool }), secret: process.env.ONLYONCE_SECRET })
await once.start()

const carrier = { isOpen: () => true, ship: async () => ({ parcel: randomUUID() }) }
const { fetch } = ordersApp(once, carrier)
const server = serve({ fetch, port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' }, ({ port }) =>
  console.log(`Listening on http://127.0.0.1:${port}`),
)

/** First no new requests, then no new work, then no database. */
process.once('SIGTERM', () => {
  server.close(async () => {
    await once.close()
    await pool.end()
  })
})
