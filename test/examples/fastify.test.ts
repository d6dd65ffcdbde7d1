import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase } from '../setup/database.ts'

const PROGRAM = fileURLToPath(new URL('../../examples/fastify/server.ts', import.meta.url))

let service: ChildProcess
let address: string

beforeAll(async () => {
  const database = await freshDatabase()
  service = spawn(process.execPath, ['--import', 'tsx', PROGRAM], {
    env: { ...process.env, DATABASE_URL: database.url, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: service.stdout! })) {
    if (line.startsWith('Listening on ')) address = line.slice('Listening on '.length)
    if (address !== undefined) break
  }
  if (address === undefined) throw new Error('The service ended before it printed its address.')
})

afterAll(async () => {
  if (service.exitCode === null && service.signalCode === null) {
    service.kill('SIGKILL')
    await once(service, 'exit')
  }
})

async function order(body: unknown, key: string, authorization = 'Bearer demo-acme') {
  const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': key }
  const response = await fetch(`${address}/orders`, { method: 'POST', headers, body: JSON.stringify(body) })
  return {
    status: response.status,
    text: await response.text(),
    location: response.headers.get('location'),
    replayed: response.headers.get('idempotent-replayed'),
  }
}

async function items(): Promise<string[]> {
  const response = await fetch(`${address}/orders`, { headers: { authorization: 'Bearer demo-acme' } })
  return ((await response.json()) as { item: string }[]).map(({ item }) => item)
}

test('an order is taken once, and a retry gets the same bytes', async () => {
  const key = randomUUID()
  const first = await order({ item: 'a book' }, key)
  expect([first.status, first.replayed]).toEqual([201, null])
  expect(await order({ item: 'a book' }, key)).toEqual({ ...first, replayed: 'true' })
  expect(await items()).toEqual(['a book'])
  expect((await order({ item: 'two books' }, key)).status).toBe(422)
})

test('what the framework refuses uses no key up', async () => {
  const key = randomUUID()
  expect((await order({ item: '' }, key)).status).toBe(400)
  expect((await order({ item: 'a pen' }, key, 'Bearer guessed')).status).toBe(401)
  expect((await order({ item: 'a pen' }, key)).status).toBe(201)
})

test('SIGTERM ends it cleanly', async () => {
  const ended = once(service, 'exit')
  service.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})
