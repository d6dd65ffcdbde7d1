import events from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { notExecuted, OnlyonceError, onlyonce } from 'onlyonce'
import { idempotent, keepRawBody } from 'onlyonce/express'
import { memory } from 'onlyonce/memory'

const once = onlyonce({ store: memory(), secret: 'a secret of at least thirty-two bytes' })
const orders: unknown[] = []
const app = express()
app.use(express.json({ verify: keepRawBody }))
app.post('/orders', idempotent(once, { account: () => 'acct_1' }), (request, response) => {
  orders.push(request.body)
  response.status(201).json({ order: orders.length })
})
const server = app.listen(0, '127.0.0.1')

beforeAll(() => events.once(server, 'listening'))

afterAll(async () => {
  server.close()
  server.closeAllConnections()
  await once.close()
})

const post = async (key: string, body: unknown) => {
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`, {
    method: 'POST',
    headers: { 'idempotency-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return {
    status: response.status,
    replayed: response.headers.get('idempotent-replayed'),
    body: await response.json(),
  }
}

test('an order that is sent twice is made once', async () => {
  expect(await post('a-key-of-jest', { item: 1 })).toEqual({
    status: 201,
    replayed: null,
    body: { order: 1 },
  })
  expect(await post('a-key-of-jest', { item: 1 })).toEqual({
    status: 201,
    replayed: 'true',
    body: { order: 1 },
  })
  expect((await post('a-key-of-jest', { item: 2 })).status).toBe(422)
  expect(orders).toEqual([{ item: 1 }])
})

test('errors and transactions are those of the package', async () => {
  expect(notExecuted()).toBeInstanceOf(OnlyonceError)
  const call = { account: 'acct_1', operation: 'orders.count', key: 'another-key-of-jest' }
  expect(await once.execute(call, async () => ({ n: 1 }))).toEqual({ outcome: 'executed', value: { n: 1 } })
})
