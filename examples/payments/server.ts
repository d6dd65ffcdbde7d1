/**
 * Payments that are charged once, however often they are sent, and finished, whoever dies. In a project of your own,
 * import from 'onlyonce', 'onlyonce/embedded' and 'onlyonce/express' instead of from src/.
 */
import { randomUUID } from 'node:crypto'
import { once as occurs } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import pg from 'pg'
import { idempotent } from '../../src/http/adapters/express/index.ts'
import { onlyonce } from '../../src/index.ts'
import { startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { startWorkers } from '../../src/workers/index.ts'
import { createPaymentWith, readPayment, TABLES } from './create-payment.ts'
import { openGateway } from './gateway.ts'

const embedded = process.env.DATABASE_URL ? null : await startEmbeddedPostgres({ folder: './data' })
const pool = new pg.Pool({ connectionString: embedded?.url ?? process.env.DATABASE_URL })
await pool.query(TABLES)
const createPayment = createPaymentWith(await openGateway(pool))

// It has to stay the same: with another secret, no retry of a stored request could be recognised.
const secret = process.env.ONLYONCE_SECRET
const once = onlyonce({ store: postgres({ pool }), secret })
await once.start()
// Goes on with what a dead process has left. Real bounds are longer: a client may come back by itself.
startWorkers(once, { operations: [createPayment], completer: { graceMs: 500 } })

const app = express()
/** Ask your own authentication; nobody gets a replay of what they may not see. */
const account = () => 'acme'

// The operation answers: there is no handler, and no body parser.
app.post(
  '/payments',
  idempotent(once, { account, operation: createPayment, input: readPayment, leaseMs: 3_000 }),
)

app.get('/payments', async (_, response) => {
  const text = 'SELECT id, amount::text, status FROM payments WHERE customer = $1 ORDER BY id'
  response.json((await pool.query(text, [account()])).rows)
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
await occurs(server, 'listening')

/** First no new requests, then no new work, then no database. close() stops the workers too. */
let closing = false
async function drain(): Promise<void> {
  if (closing) return
  closing = true
  const closed = occurs(server, 'close')
  server.close()
  server.closeIdleConnections()
  await closed
  await once.close()
  await pool.end()
  await embedded?.stop()
}
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, drain)

const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const pay = (amount: number) =>
  `curl -i ${address}/payments -H 'Idempotency-Key: ${randomUUID()}' -H 'Content-Type: application/json' -d '{"amount":${amount}}'`
console.log(`Listening on ${address}

  ${pay(4200)}

Send it twice: the second answer is the first one, with Idempotent-Replayed: true. Then try these:

  ${pay(200_000)}    # declined: 402, and replayed as well
  ${pay(4213)}    # the answer of the gateway is lost; it is asked, and the payment goes on
  ${pay(4214)}    # takes a second: kill -9 ${process.pid} meanwhile, start again, wait, and look

  curl ${address}/payments
`)
