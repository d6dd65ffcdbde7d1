/**
 * The same without a framework. In a project of your own, import from 'onlyonce' and 'onlyonce/node' instead of from
 * src/.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { json } from 'node:stream/consumers'
import { idempotent } from '../../src/http/adapters/node/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

export const TABLES = `CREATE TABLE IF NOT EXISTS notes (customer text NOT NULL, text text NOT NULL)`

const CUSTOMERS = new Map([['Bearer demo-acme', 'acme']])
const account = (request: IncomingMessage) => CUSTOMERS.get(request.headers.authorization ?? '')

export function makeServer(once: Onlyonce<PostgresTx>): Server {
  const policy = { account, operation: 'notes.create', protect: 'transaction' } as const
  const createNote = idempotent(once, policy, async (request, response, { tx, account }) => {
    const { text } = (await json(request)) as { text: string }
    await tx.query('INSERT INTO notes (customer, text) VALUES ($1, $2)', [account, text])
    response.writeHead(201, { 'Content-Type': 'application/json' }).end(JSON.stringify({ text }))
  })
  return createServer((request, response) => {
    if (request.method === 'POST' && request.url === '/notes') createNote(request, response)
    else response.writeHead(404).end()
  })
}
