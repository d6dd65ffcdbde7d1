/**
 * Orders over Fastify: each is taken once, however often it is sent. In a project of your own, import from 'onlyonce',
 * 'onlyonce/embedded' and 'onlyonce/fastify' instead of from src/.
 */
import { randomUUID } from 'node:crypto'
import { type FastifyRequest, fastify } from 'fastify'
import pg from 'pg'
import { idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { onlyonce } from '../../src/index.ts'
import { startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'

/** A demo key, printed for everybody to see. Real ones are random, and stored as hashes. */
const CUSTOMERS = new Map([['demo-acme', 'acme']])

const embedded = process.env.DATABASE_URL ? null : await startEmbeddedPostgres({ folder: './data' })
const pool = new pg.Pool({ connectionString: embedded?.url ?? process.env.DATABASE_URL })
await pool.query(
  'CREATE TABLE IF NOT EXISTS orders (id uuid PRIMARY KEY, customer text NOT NULL, item text NOT NULL)',
)
// It has to stay the same: with another secret, no retry of a stored request could be recognised.
const secret = process.env.ONLYONCE_SECRET
const once = onlyonce({ store: postgres({ pool }), secret })

const app = fastify()

/** Before anything else: nobody gets a replay of what they may not see. */
app.addHook('onRequest', async (request, reply) => {
  if (customerOf(request) === undefined)
    await reply.code(401).send({ message: 'Send Authorization: Bearer demo-acme.' })
})

await app.register(idempotency, { once, account: customerOf })

const schema = {
  body: {
    type: 'object',
    required: ['item'],
    additionalProperties: false,
    properties: { item: { type: 'string', minLength: 1, maxLength: 100 } },
  },
}

/** The order, its record and this reply are one commit; a retry gets the same bytes. */
type OrderRequest = FastifyRequest<{ Body: { item: string } }>
const takeOrder = idempotent(
  { protect: 'transaction' },
  async (request: OrderRequest, reply, { account, tx }) => {
    const { item } = request.body
    const id = randomUUID()
    await tx.query('INSERT INTO orders (id, customer, item) VALUES ($1, $2, $3)', [id, account, item])
    return reply.code(201).header('location', `/orders/${id}`).send({ id, item })
  },
)
app.post('/orders', { schema, ...takeOrder })

app.get('/orders', async (request) => {
  const text = 'SELECT id, item FROM orders WHERE customer = $1 ORDER BY item'
  return (await pool.query(text, [customerOf(request)])).rows
})

function customerOf({ headers }: FastifyRequest): string | undefined {
  const [, apiKey = ''] = /^Bearer (\S+)$/i.exec(headers.authorization ?? '') ?? []
  return CUSTOMERS.get(apiKey)
}

/** First no new requests, then no new work, then no database. */
app.addHook('onClose', async () => {
  await once.close()
  await pool.end()
  await embedded?.stop()
})
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => app.close())

const address = await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })
console.log(`Listening on ${address}

  curl -i ${address}/orders -H 'Authorization: Bearer demo-acme' -H 'Idempotency-Key: ${randomUUID()}' -H 'Content-Type: application/json' -d '{"item":"a book"}'

Send it twice: the second answer is the first one, with Idempotent-Replayed: true.`)
