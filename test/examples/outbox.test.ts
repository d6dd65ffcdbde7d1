import { createServer, request } from 'node:http'
import { expect, test } from 'vitest'
import { makeRelay, makeWarehouse, TABLES, takeOrder } from '../../examples/outbox/shop.ts'
import { listening } from '../adapters/servers/listen.ts'
import { openShop } from '../contract/shop.ts'
import { runUntil } from '../outbox/office.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

test('examples/outbox: an order is packed once and thanked for, though the answer of the warehouse was lost', async () => {
  const shop = await openShop()
  await shop.observer.query(TABLES)
  const once = shop.open()
  const warehouse = await listening(makeWarehouse(once, shop.database.pool({ max: 2 })))
  cleanUpLater(warehouse.close)
  // Between the two: passes every post on, and loses the first answer.
  let posts = 0
  const between = createServer((incoming, outgoing) => {
    posts += 1
    const lost = posts === 1
    const { method, headers } = incoming
    const passed = request({ port: warehouse.port, method, headers }, (answer) => {
      if (lost) outgoing.destroy()
      else outgoing.writeHead(answer.statusCode!).end()
    })
    incoming.pipe(passed)
  })
  const { port, close } = await listening(between)
  cleanUpLater(close)

  const sent: string[] = []
  const worker = makeRelay(once, `http://127.0.0.1:${port}/`, async (_, orderId) => void sent.push(orderId))
  const key = crypto.randomUUID()
  const first = await takeOrder(once, 'acme', key, 'tea')
  const again = await takeOrder(once, 'acme', key, 'tea')
  expect([first.outcome, again.outcome]).toEqual(['executed', 'replayed'])
  await runUntil('the warehouse was told twice', () => posts >= 2, worker)
  const { rows } = await shop.observer.query('SELECT order_id, item FROM parcels')
  const id = first.outcome === 'executed' && first.value.id
  expect(rows).toEqual([{ order_id: id, item: 'tea' }])
  expect(sent).toEqual([id])
})
