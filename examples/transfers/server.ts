/**
 * A small bank that moves money once, however often it is asked to. In a project of your own, import from
 * 'onlyonce' and 'onlyonce/embedded' instead of from src/.
 */
import { randomUUID } from 'node:crypto'
import { once as occurs } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseKeyHeader } from '../../src/entries/keys.ts'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { openDatabase, readSecret } from './database.ts'
import { type Answer, answerError, answerOutcome, Problem, readJson, send } from './http.ts'
import { checkTransfer, listAccounts, transfer } from './transfers.ts'

const FOLDER = './data'
const DRAIN_MAX_MS = 10_000
const OPERATION = 'transfers.create'
/** Demo keys, printed for everybody to see. Real ones are random, and stored as hashes. */
const CUSTOMERS = new Map([
  ['demo-acme', 'acme'],
  ['demo-globex', 'globex'],
])

const database = await openDatabase(FOLDER)
const once = onlyonce({
  store: postgres({ pool: database.pool }),
  secret: await readSecret(FOLDER),
})
await once.start()

async function createTransfer(request: IncomingMessage, account: string): Promise<Answer> {
  const key = parseKeyHeader(request.headersDistinct['idempotency-key'])
  const input = checkTransfer(await readJson(request))
  const result = await once.transaction({ account, operation: OPERATION, key, input }, (tx) =>
    transfer(tx, account, input),
  )
  return answerOutcome(result)
}

async function route(request: IncomingMessage): Promise<Answer> {
  // Before anything else: nobody gets a replay of what they may not see.
  const customer = authenticate(request)
  const url = new URL(`http://localhost${request.url}`)
  switch (`${request.method} ${url.pathname}`) {
    case 'POST /transfers':
      return await createTransfer(request, customer)
    case 'GET /accounts':
      return { status: 200, body: await listAccounts(database.pool, customer) }
    case 'GET /explain': {
      const key = parseKeyHeader(url.searchParams.get('key'))
      return { status: 200, body: await once.explain({ account: customer, operation: OPERATION, key }) }
    }
    default:
      throw new Problem(404, 'not_found', 'Try POST /transfers, GET /accounts or GET /explain?key=.')
  }
}

function authenticate(request: IncomingMessage): string {
  const [, apiKey = ''] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  const customer = CUSTOMERS.get(apiKey)
  if (customer === undefined) throw new Problem(401, 'unauthorized', 'Send Authorization: Bearer demo-acme.')
  return customer
}

let draining = false
const server = createServer(async (request, response) => {
  const answer = await route(request).catch(answerError)
  // A connection that is kept alive would hold up the drain.
  if (draining) response.setHeader('Connection', 'close')
  send(response, answer)
})
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
await occurs(server, 'listening')

/** First no new requests, then no new work, then no database. */
async function drain(): Promise<void> {
  if (draining) return
  draining = true
  const closed = occurs(server, 'close')
  server.close()
  setTimeout(() => server.closeAllConnections(), DRAIN_MAX_MS).unref()
  await closed
  await once.close()
  await database.close()
}
// Not only once: a second signal would otherwise end the process in the middle of the drain.
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, drain)

const { port } = server.address() as AddressInfo
const address = `http://127.0.0.1:${port}`
const headers = `-H 'Authorization: Bearer demo-acme'`
console.log(`Listening on ${address}

  curl -i ${address}/transfers ${headers} -H 'Idempotency-Key: ${randomUUID()}' -d '{"from":"alice","to":"bob","amount":500}'

Send it twice: the second answer is the first one, with Idempotent-Replayed: true.
Change the amount and keep the key: 422. With a new key, ask for more than alice has: 402, and replayed as well.
Then look at the balances, and at the story of a key:

  curl ${address}/accounts ${headers}
  curl '${address}/explain?key=…' ${headers}
`)
