/**
 * Orders in Express: one line for each route that must not happen twice. In a project of your own, import from
 * 'onlyonce' and 'onlyonce/express' instead of from src/.
 */
import { randomUUID } from 'node:crypto'
import express, { type Express } from 'express'
import type pg from 'pg'
import { idempotent, keepRawBody } from '../../src/http/adapters/express/index.ts'
import { notExecuted, type Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

/** Demo keys; real ones are random, and stored as hashes. */
const CUSTOMERS = new Map([
  ['Bearer demo-acme', 'acme'],
  ['Bearer demo-globex', 'globex'],
])

/** A warehouse elsewhere: what it does, no rollback can undo. */
export interface Warehouse {
  isOpen(): boolean
  ship(item: string): Promise<{ readonly parcel: string }>
}

export const TABLES = `CREATE TABLE IF NOT EXISTS orders (
  customer text NOT NULL,
  id       uuid NOT NULL,
  item     text NOT NULL,
  PRIMARY KEY (customer, id)
)`

export function makeApp(once: Onlyonce<PostgresTx>, pool: pg.Pool, warehouse: Warehouse): Express {
  const app = express()
  const account = (request: express.Request) => CUSTOMERS.get(request.get('authorization') ?? '')

  // All effects in the database: the order and the reply are one commit.
  app.post(
    '/orders',
    express.json({ verify: keepRawBody }),
    idempotent(once, { account, protect: 'transaction' }, async (request, response, { account, tx }) => {
      const id = randomUUID()
      const values = [account, id, `${request.body.item}`]
      await tx.query('INSERT INTO orders (customer, id, item) VALUES ($1, $2, $3)', values)
      response.status(201).location(`/orders/${id}`).json({ id, item: request.body.item })
    }),
  )

  // An effect elsewhere: claimed, run, stored, and never run twice.
  app.post('/orders/:id/ship', idempotent(once, { account }), async (request, response) => {
    if (!warehouse.isOpen()) throw notExecuted(new Error('The warehouse is closed.'))
    response.json(await warehouse.ship(`${request.params.id}`))
  })

  app.get('/orders', async (request, response) => {
    const { rows } = await pool.query('SELECT id, item FROM orders WHERE customer = $1', [account(request)])
    response.json(rows)
  })
  return app
}
