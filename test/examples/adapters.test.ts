import { createServer, type Server } from 'node:http'
import { expect, test } from 'vitest'
import { makeApp, TABLES as ORDERS } from '../../examples/express/app.ts'
import { makeServer, TABLES as NOTES } from '../../examples/node/app.ts'
import { listening } from '../adapters/servers/listen.ts'
import { openShop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

/** A client of a server that runs until the test is over. */
async function clientOf(server: Server) {
  const { port, close } = await listening(server)
  cleanUpLater(close)
  return async (method: string, path: string, key: string, body?: unknown, token = 'demo-acme') => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'idempotency-key': key,
        'content-type': 'application/json',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const { headers, status } = response
    return { status, text, replayed: headers.get('idempotent-replayed'), location: headers.get('location') }
  }
}

test('examples/express: an order is placed once and shipped once', async () => {
  const shop = await openShop()
  await shop.observer.query(ORDERS)
  let [open, shipped] = [false, 0]
  const warehouse = {
    isOpen: () => open,
    ship: async () => ({ parcel: `parcel-${++shipped}` }),
  }
  const app = makeApp(shop.open(), shop.observer, warehouse)
  app.set('env', 'test')
  const call = await clientOf(createServer(app))
  const key = crypto.randomUUID()

  const first = await call('POST', '/orders', key, { item: 'tea' })
  const again = await call('POST', '/orders', key, { item: 'tea' })
  expect([first.status, first.replayed]).toEqual([201, null])
  expect(again).toEqual({ ...first, replayed: 'true' })
  expect((await call('POST', '/orders', key, { item: 'cake' })).status).toBe(422)
  expect((await call('POST', '/orders', key, { item: 'tea' }, 'guessed')).status).toBe(401)
  expect(JSON.parse((await call('GET', '/orders', key)).text)).toHaveLength(1)

  const ship = () => call('POST', `${first.location}/ship`, key)
  expect((await ship()).status).toBe(503)
  open = true
  expect(await ship()).toMatchObject({ status: 200, text: '{"parcel":"parcel-1"}', replayed: null })
  expect(await ship()).toMatchObject({ status: 200, text: '{"parcel":"parcel-1"}', replayed: 'true' })
  expect(shipped).toBe(1)
})

test('examples/node: a note is written once', async () => {
  const shop = await openShop()
  await shop.observer.query(NOTES)
  const call = await clientOf(makeServer(shop.open()))
  const key = crypto.randomUUID()
  const first = await call('POST', '/notes', key, { text: 'hello' })
  expect([first.status, first.text]).toEqual([201, '{"text":"hello"}'])
  expect(await call('POST', '/notes', key, { text: 'hello' })).toEqual({ ...first, replayed: 'true' })
  expect((await shop.observer.query('SELECT text FROM notes')).rows).toEqual([{ text: 'hello' }])
})
