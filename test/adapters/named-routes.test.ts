import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import express, { type RequestHandler } from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { idempotent as expressLayer } from '../../src/http/adapters/express/index.ts'
import { idempotent as fastifyMark, idempotency } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as fetchLayer } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as honoLayer } from '../../src/http/adapters/hono/index.ts'
import { idempotent as nodeLayer } from '../../src/http/adapters/node/index.ts'
import { onlyonce } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { SECRET } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { hearWarnings } from '../setup/warnings.ts'
import { Client } from './client.ts'
import { listening } from './servers/listen.ts'

/** A service has many routes: a message that names none of them is of little help. */
const once = onlyonce({ store: memory(), secret: SECRET })
const account = () => 'acct_1'

const WRONG: readonly (readonly [object, string])[] = [
  [{ lease_ms: 1 }, 'has no option lease_ms. Did you mean leaseMs?'],
  [{ leaseMs: 0 }, 'leaseMs is a whole number'],
  [{ onConcurrent: { wait_ms: 1 } }, 'onConcurrent has no option wait_ms'],
  [{ fingerprint: { exclude: ['meta'] } }, 'starts with no /'],
  [{ account: 5 }, 'account is a function'],
  [{ account: ' ' }, 'It holds only spaces.'],
]

describe.each([
  ['Express', (options: object) => expressLayer(once, options as never)],
  ['Hono', (options: object) => honoLayer(once, options as never)],
  ['fetch', (options: object) => fetchLayer(once, options as never, () => new Response())],
  ['node:http', (options: object) => nodeLayer(once, options as never, () => {})],
])('%s', (_, make) => {
  test.each(WRONG)('%j is told with the operation', (options, told) => {
    const wrong = () => make({ account, operation: 'things.create', ...options })
    expect(wrong).toThrow(told)
    expect(wrong).toThrow(/things\.create: /)
  })
})

test.each(WRONG)('Fastify: %j is told with the route', async (options, told) => {
  const app = fastify()
  cleanUpLater(() => app.close())
  await app.register(idempotency, { once, account })
  const wrong = () => app.post('/v1/things', { preHandler: fastifyMark(options as object) }, async () => ({}))
  expect(wrong).toThrow(told)
  expect(wrong).toThrow(/POST \/v1\/things: /)
})

describe('a mistake that a request meets is told with its route', () => {
  test('Express', async () => {
    const told = hearWarnings('OnlyonceMistakeWarning')
    const app = express()
    const layer = expressLayer(once, { account: () => '' }) as unknown as RequestHandler
    app.post('/things/:id', layer).post('/others', layer)
    const server = await listening(createServer(app))
    cleanUpLater(() => server.close())
    const client = new Client(server.port)
    for (const path of ['/things/1', '/things/2', '/others']) await client.send({ key: randomUUID(), path })
    await expect
      .poll(() => told.map((warning) => warning.split(': A scope')[0]))
      .toEqual(['POST /things/:id: account_invalid', 'POST /others: account_invalid'])
  })

  test('Hono', async () => {
    const told = hearWarnings('OnlyonceMistakeWarning')
    const app = new Hono().use('*', honoLayer(once, { account: () => '' }))
    app.post('/v1/things/:id', (c) => c.json({}))
    await app.request('/v1/things/1', { method: 'POST', headers: { 'idempotency-key': randomUUID() } })
    await expect
      .poll(() => told)
      .toEqual([expect.stringMatching(/^POST \/v1\/things\/:id: account_invalid: /)])
  })
})
