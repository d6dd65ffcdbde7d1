import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once as occurs } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ordersApp } from '../../examples/hono/app.ts'
import { leaveEffect, openShop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'

const PROGRAM = fileURLToPath(new URL('../../examples/hono/server.ts', import.meta.url))

type Send = (path: string, init: RequestInit) => Response | Promise<Response>

async function post(send: Send, path: string, body: unknown, key: string | null, apiKey = 'demo-acme') {
  const headers = {
    'content-type': 'application/json',
    authorization: `Bearer ${apiKey}`,
    ...(key !== null && { 'idempotency-key': key }),
  }
  const response = await send(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const replayed = response.headers.get('idempotent-replayed') === 'true'
  return { status: response.status, text: await response.text(), replayed, headers: response.headers }
}

test('the service starts, places an order once, and ends when it is told to', async () => {
  const { url } = await freshDatabase()
  const env = { ...process.env, DATABASE_URL: url, ONLYONCE_SECRET: randomUUID(), PORT: '0' }
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit']
  const service = spawn(process.execPath, ['--import', 'tsx', PROGRAM], { env, stdio })
  cleanUpLater(async () => void service.kill('SIGKILL'))
  const [line] = (await occurs(createInterface({ input: service.stdout }), 'line')) as [string]
  const address = line.replace('Listening on ', '')
  const send: Send = (path, init) => fetch(address + path, init)

  const key = randomUUID()
  const first = await post(send, '/orders', { item: 'a lamp' }, key)
  expect(first.status).toBe(201)
  const again = await post(send, '/orders', { item: 'a lamp' }, key)
  expect(again).toMatchObject({ status: 201, text: first.text, replayed: true })
  expect(again.headers.get('location')).toBe(first.headers.get('location'))
  expect(await post(send, '/orders', { item: 'a chair' }, key)).toMatchObject({ status: 422 })

  const ended = occurs(service, 'exit')
  service.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})

test('what is wrong in itself leaves no record, and what did not happen may happen later', async () => {
  const shop = await openShop()
  await shop.observer.query('CREATE TABLE orders (customer text, id uuid, item text NOT NULL)')
  let open = false
  const carrier = {
    isOpen: () => open,
    async ship(order: string) {
      await leaveEffect(shop.observer, order)
      return { parcel: randomUUID() }
    },
  }
  const app = ordersApp(shop.open(), carrier)
  const send: Send = (path, init) => app.request(path, init)
  const key = randomUUID()

  expect(await post(send, '/orders', { item: 1 }, key)).toMatchObject({ status: 400, text: 'Send an item.' })
  expect(await post(send, '/orders', { item: 'a lamp' }, key)).toMatchObject({ status: 201, replayed: false })
  expect(await post(send, '/orders', { item: 'a lamp' }, null)).toMatchObject({ status: 400 })
  expect(await post(send, '/orders', { item: 'a lamp' }, key, 'guessed')).toMatchObject({ status: 401 })

  expect(await post(send, '/orders/7/shipment', {}, key)).toMatchObject({ status: 503, replayed: false })
  open = true
  const shipped = await post(send, '/orders/7/shipment', {}, key)
  expect(shipped).toMatchObject({ status: 201, replayed: false })
  expect(await post(send, '/orders/7/shipment', {}, key)).toMatchObject({
    text: shipped.text,
    replayed: true,
  })
  expect(await post(send, '/orders/8/shipment', {}, key)).toMatchObject({ status: 422 })
  expect(await shop.countEffects('7')).toBe(1)
})
