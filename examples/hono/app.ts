/**
 * Orders that are placed once and shipped once. In a project of your own, import from 'onlyonce' and 'onlyonce/hono'
 * instead of from src/.
 */
import { randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { validator } from 'hono/validator'
import { type IdempotencyVariables, idempotent } from '../../src/http/adapters/hono/index.ts'
import { notExecuted, type Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

type AppEnv = { Variables: IdempotencyVariables<PostgresTx> & { customer: string } }

/** Somebody who is told to send a parcel, and cannot be told to take it back. */
export interface Carrier {
  isOpen(): boolean
  ship(order: string): Promise<{ readonly parcel: string }>
}

/** Demo keys, for everybody to see. Real ones are random, and stored as hashes. */
const CUSTOMERS = new Map([['demo-acme', 'acme']])

export function ordersApp(once: Onlyonce<PostgresTx>, carrier: Carrier) {
  const app = new Hono<AppEnv>()

  // Before anything else: nobody gets a replay of what they may not see.
  app.use(async (c, next) => {
    const customer = CUSTOMERS.get(c.req.header('authorization')?.replace(/^Bearer /, '') ?? '')
    if (customer === undefined)
      throw new HTTPException(401, { message: 'Send Authorization: Bearer demo-acme.' })
    c.set('customer', customer)
    await next()
  })
  const account = (c: { get(name: 'customer'): string }) => c.get('customer')

  // A request that is wrong in itself leaves no record, so the validator comes first.
  const order = validator('json', (body) => {
    if (typeof body.item === 'string') return { item: body.item as string }
    throw new HTTPException(400, { message: 'Send an item.' })
  })

  // All effects are in the database: the order and the record of its key are one commit.
  app.post('/orders', order, idempotent(once, { account, protect: 'transaction' }), async (c) => {
    const id = randomUUID()
    const { item } = c.req.valid('json')
    await c.var.idempotency.tx.query('INSERT INTO orders (customer, id, item) VALUES ($1, $2, $3)', [
      c.var.customer,
      id,
      item,
    ])
    return c.json({ id, item }, 201, { Location: `/orders/${id}` })
  })

  // A parcel cannot be rolled back: the key is claimed before, and the answer is stored behind it.
  app.post('/orders/:id/shipment', idempotent(once, { account }), async (c) => {
    if (!carrier.isOpen()) throw notExecuted('the carrier is closed')
    return c.json(await carrier.ship(c.req.param('id')), 201)
  })

  app.onError((error, c) => {
    if (error instanceof HTTPException) return error.getResponse()
    const code = 'code' in error && error.code === 'not_executed' ? 503 : 500
    return c.json({ error: code === 503 ? error.message : 'Something went wrong.' }, code)
  })
  return app
}
