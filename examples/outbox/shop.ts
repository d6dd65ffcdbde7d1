/**
 * A shop that takes orders, tells its warehouse about them, and thanks for them by mail; and the warehouse, which is told
 * at least once and packs each order once. In a project of your own, import from 'onlyonce' instead of from src/.
 */
import { createServer, type Server } from 'node:http'
import { json } from 'node:stream/consumers'
import type pg from 'pg'
import type { Onlyonce } from '../../src/index.ts'
import { httpPublisher, inbox, type OutboxEvent, outbox, type Relay, relay } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

export const TABLES = `
  CREATE TABLE IF NOT EXISTS orders (id uuid PRIMARY KEY, item text NOT NULL);
  CREATE TABLE IF NOT EXISTS parcels (order_id uuid NOT NULL, item text NOT NULL)`

/** The order, the event and the job are one transaction: all of it, or nothing. */
export function takeOrder(once: Onlyonce<PostgresTx>, account: string, key: string, item: string) {
  const { emit, stage } = outbox(once)
  return once.transaction({ account, operation: 'orders.create', key, input: { item } }, async (tx) => {
    const id = crypto.randomUUID()
    await tx.query('INSERT INTO orders (id, item) VALUES ($1, $2)', [id, item])
    await emit(tx, { account, type: 'order.placed', payload: { id, item }, aggregate: `order:${id}` })
    await stage(tx, { account, job: 'send_thanks', payload: { id } })
    return { id }
  })
}

/** Tells the warehouse, and sends mail. `send` is given an id by which a mail server can tell duplicates. */
export function makeRelay(
  once: Onlyonce<PostgresTx>,
  warehouseUrl: string,
  send: (messageId: string, orderId: string) => Promise<void>,
): Relay {
  return relay(once, {
    destinations: { warehouse: httpPublisher({ url: warehouseUrl, timeoutMs: 5_000 }) },
    jobs: { send_thanks: async ({ id, payload }) => send(id, (payload as { id: string }).id) },
  })
}

/** The warehouse answers after its own transaction has committed; an event that it has seen it only acknowledges. */
export function makeWarehouse(once: Onlyonce<PostgresTx>, pool: pg.Pool): Server {
  return createServer(async (request, response) => {
    const event = (await json(request)) as OutboxEvent
    const { id, item } = event.payload as { id: string; item: string }
    const tx = await pool.connect()
    try {
      await tx.query('BEGIN')
      const message = { account: event.account, source: 'shop', messageId: event.id }
      await inbox(once).once(tx, message, () =>
        tx.query('INSERT INTO parcels (order_id, item) VALUES ($1, $2)', [id, item]),
      )
      await tx.query('COMMIT')
      response.writeHead(204).end()
    } catch {
      await tx.query('ROLLBACK')
      response.writeHead(503).end()
    } finally {
      tx.release()
    }
  })
}
