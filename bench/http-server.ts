/**
 * The server of the HTTP benchmark, in a process of its own. With PLUGIN=yes its application has the plugin and
 * protected routes; otherwise it does not know of them, as an application that never heard of onlyonce.
 */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { type FastifyInstance, fastify } from 'fastify'
import pg from 'pg'
import type { PostgresTx } from '../src/store/postgres/index.ts'
import { idempotency, idempotent, onlyonce, postgres } from './library.ts'

const CONNECTIONS = 16
const { DATABASE_URL, PLUGIN } = process.env as Record<string, string>

interface Queries {
  query(text: string, values: unknown[]): Promise<{ rows: { id: string }[] }>
}

const pool = new pg.Pool({ connectionString: DATABASE_URL!, max: CONNECTIONS })
pool.on('error', () => {})

/** The unit of work: writes one row. The same function behind every route that writes. */
async function work(tx: Queries): Promise<{ id: string }> {
  const { rows } = await tx.query('INSERT INTO orders (id, note) VALUES ($1, $2) RETURNING id', [
    randomUUID(),
    'one row',
  ])
  return { id: rows[0]!.id }
}

async function inPlainTransaction(): Promise<{ id: string }> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const value = await work(client as unknown as Queries)
    await client.query('COMMIT')
    return value
  } finally {
    client.release()
  }
}

function addPlainRoutes(app: FastifyInstance): void {
  app.post('/unprotected', async (_, reply) => reply.code(201).send(await inPlainTransaction()))
  app.post('/autocommit', async (_, reply) => reply.code(201).send(await work(pool as unknown as Queries)))
  // Does nothing, so that whatever a plugin adds to it would be seen.
  app.post('/echo', async (request) => request.body)
  app.get<{ Params: { id: string } }>('/orders/:id', async ({ params }) => {
    const { rows } = await pool.query('SELECT id, note FROM orders WHERE id = $1', [params.id])
    return rows[0]
  })
}

async function addProtectedRoutes(app: FastifyInstance): Promise<void> {
  const store = postgres({ connectionString: DATABASE_URL!, poolSize: CONNECTIONS })
  const once = onlyonce({ store, secret: 'a secret for the benchmark, which protects nothing.' })
  await once.start()
  await app.register(idempotency, { once, account: () => 'acct_1' })
  const protect = { preHandler: idempotent({ protect: 'transaction' }) }
  app.post('/transaction', protect, async (request, reply) => {
    const tx = request.idempotency!.tx as PostgresTx
    return reply.code(201).send(await work(tx as unknown as Queries))
  })
  app.post('/handler', { preHandler: idempotent() }, async (_, reply) =>
    reply.code(201).send(await inPlainTransaction()),
  )
}

const app = fastify()
if (PLUGIN === 'yes') await addProtectedRoutes(app)
addPlainRoutes(app)
await app.listen({ port: 0, host: '127.0.0.1' })
process.stdout.write(`${(app.server.address() as AddressInfo).port}\n`)
// Whoever started it is gone when this ends: then there is nobody to serve.
process.stdin.resume().on('end', () => process.exit(0))
