import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'

type Route = typeof import('../../examples/next/app/payments/[id]/capture/route.ts')

let database: FreshDatabase
let route: Route

beforeAll(async () => {
  database = await freshDatabase()
  process.env.DATABASE_URL = database.url
  process.env.ONLYONCE_SECRET = 'the-secret-of-the-example-0123456789'
  await database.pool({ max: 1 }).query(
    `CREATE TABLE payments (customer text, id text, authorized int, captured int DEFAULT 0, PRIMARY KEY (customer, id));
     INSERT INTO payments VALUES ('acme', 'a', 100), ('acme', 'b', 100)`,
  )
  route = await import('../../examples/next/app/payments/[id]/capture/route.ts')
  const { once } = globalThis as unknown as { once: Onlyonce<PostgresTx> }
  cleanUpLater(() => once.close())
})

async function capture(id: string, amount: number, key: string, apiKey = 'demo-acme') {
  const headers = { 'Idempotency-Key': key, Authorization: `Bearer ${apiKey}` }
  const init = { method: 'POST', headers, body: JSON.stringify({ amount }) }
  const request = new Request(`http://localhost/payments/${id}/capture`, init)
  const response = await route.POST(request, { params: Promise.resolve({ id }) })
  const replayed = response.headers.get('Idempotent-Replayed') === 'true'
  return { status: response.status, body: await response.json(), replayed }
}

async function capturedOf(id: string): Promise<number> {
  const { rows } = await database
    .pool({ max: 1 })
    .query("SELECT captured FROM payments WHERE customer = 'acme' AND id = $1", [id])
  return rows[0].captured
}

test('a payment is captured once, and a retry is told so', async () => {
  const key = randomUUID()
  expect(await capture('a', 60, key)).toEqual({
    status: 200,
    body: { id: 'a', captured: 60 },
    replayed: false,
  })
  expect(await capture('a', 60, key)).toEqual({
    status: 200,
    body: { id: 'a', captured: 60 },
    replayed: true,
  })
  expect(await capturedOf('a')).toBe(60)
  // More than is left under a new key, and the same under the old one.
  const other = randomUUID()
  expect(await capture('a', 60, other)).toMatchObject({ status: 422, body: { error: 'too_much' } })
  expect(await capture('a', 60, other)).toMatchObject({ status: 422, replayed: true })
  expect(await capturedOf('a')).toBe(60)
})

test('a key belongs to one payment and one amount', async () => {
  const key = randomUUID()
  expect(await capture('b', 10, key)).toMatchObject({ status: 200 })
  expect(await capture('a', 10, key)).toMatchObject({ status: 422, body: { code: 'key_reused' } })
  expect(await capture('b', 11, key)).toMatchObject({ status: 422, body: { code: 'key_reused' } })
  expect(await capturedOf('b')).toBe(10)
})

test('strangers are refused', async () => {
  expect(await capture('a', 1, randomUUID(), 'guessed')).toMatchObject({ status: 401 })
})
