import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { waitUntil } from '../setup/wait.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

describe.each(['express', 'fastify'])('the orders of examples/nest on %s', (platform) => {
  let database: FreshDatabase
  let service: ChildProcess
  let address: string
  const lines: string[] = []

  beforeAll(async () => {
    database = await freshDatabase()
    service = spawn(process.execPath, ['--import', 'tsx', 'examples/nest/server.ts'], {
      cwd: ROOT,
      env: {
        ...process.env,
        DATABASE_URL: database.url,
        ONLYONCE_SECRET: 'a secret for the example, of 32 bytes or more',
        PLATFORM: platform,
        PORT: '0',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    createInterface({ input: service.stdout! }).on('line', (line) => lines.push(line))
    await waitUntil('the service listens', () => lines.length > 0 || service.exitCode !== null)
    address = lines[0]!.replace('Listening on ', '')
  })

  afterAll(() => {
    if (service.exitCode === null && service.signalCode === null) service.kill('SIGKILL')
  })

  async function post(path: string, body: unknown, key: string, apiKey = 'demo-acme') {
    const response = await fetch(address + path, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${apiKey}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': key,
      },
      body: JSON.stringify(body),
    })
    const replayed = response.headers.get('Idempotent-Replayed')
    return { status: response.status, replayed, text: await response.text() }
  }

  const countOrders = async (item: string) => {
    const counted = await database.direct({ max: 1 }).query('SELECT id FROM orders WHERE item = $1', [item])
    return counted.rows.length
  }

  it.each([
    ['/orders', 201],
    ['/orders/quotes', 200],
  ])('%s answers a retry with the same bytes, and nobody else', async (path, status) => {
    const key = randomUUID()
    const body = { item: randomUUID(), amount: 500 }
    const first = await post(path, body, key)
    expect([first.status, first.replayed]).toEqual([status, null])
    expect(await post(path, body, key)).toEqual({ ...first, replayed: 'true' })
    expect((await post(path, { ...body, amount: 501 }, key)).status).toBe(422)
    expect((await post(path, body, key, 'demo-nobody')).status).toBe(401)
    const stranger = await post(path, body, key, 'demo-globex')
    expect([stranger.status, stranger.replayed]).toEqual([status, null])
    // Two customers, one order each.
    expect(await countOrders(body.item)).toBe(path === '/orders' ? 2 : 0)
  })

  it('holds no key against a request that was wrong in itself', async () => {
    const key = randomUUID()
    expect((await post('/orders', { item: 'tea', amount: 0 }, key)).status).toBe(400)
    expect((await post('/orders', { item: 'tea', amount: 1 }, key)).status).toBe(201)
  })

  it('places one order for ten requests at once', async () => {
    const key = randomUUID()
    const body = { item: randomUUID(), amount: 7 }
    const answers = await Promise.all(Array.from({ length: 10 }, () => post('/orders', body, key)))
    expect(answers.filter(({ status }) => status === 201 || status === 409)).toHaveLength(10)
    expect(answers.filter(({ status, replayed }) => status === 201 && replayed === null)).toHaveLength(1)
    expect(await countOrders(body.item)).toBe(1)
  })

  it('ends in an orderly way', async () => {
    service.kill('SIGTERM')
    await once(service, 'close')
    expect(lines.at(-1)).toBe('Closed.')
  })
})
