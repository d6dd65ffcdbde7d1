import { createServer } from 'node:http'
import cors from 'cors'
import express5 from 'express'
import express4 from 'express4'
import { beforeAll, describe, expect, it } from 'vitest'
import { idempotent, keepRawBody } from '../../src/http/adapters/express/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { hearWarnings } from '../setup/warnings.ts'
import { Client } from './client.ts'
import { expectProblem, expectReplay } from './expectations.ts'
import { listening } from './servers/listen.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

/** As applications are laid out: what is for all routes stands in front of them. */
async function open(
  make: typeof express5,
  before: (app: ReturnType<typeof express5>) => void,
): Promise<Client> {
  const app = make()
  app.set('env', 'test')
  before(app)
  app.post(
    '/things',
    idempotent(shop.open(), { account: 'acme' }, (req, res) => {
      res.status(201).json({ made: req.body })
    }),
  )
  const server = await listening(createServer(app))
  cleanUpLater(() => server.close())
  return new Client(server.port)
}

describe.each([
  ['Express 5', express5],
  ['Express 4', express4 as unknown as typeof express5],
])('%s', (_, make) => {
  it('express.json() in front of all routes keeps the bytes by the line that is documented', async () => {
    const client = await open(make, (app) => app.use(make.json({ verify: keepRawBody })))
    // Two numbers for the fingerprint, and one for JavaScript.
    const sent = { key: `kept-${make === express5}-123456`, body: '{"amount":9007199254740993}' }
    const first = await client.send(sent)
    expect(first.status).toBe(201)
    expectReplay(first, await client.send(sent))
    expectProblem(await client.send({ ...sent, body: '{"amount":9007199254740992}' }), 'key_reused')
  })

  it('without it the first request tells the developer exactly that line, and runs nothing', async () => {
    const told = hearWarnings('OnlyonceMistakeWarning')
    const client = await open(make, (app) => app.use(make.json()))
    expectProblem(await client.send({ body: { amount: 5 } }), 'raw_body_missing')
    expect(told).toEqual([expect.stringContaining('app.use(express.json({ verify: keepRawBody }))')])
  })

  it('cors() in front is on every answer, with the headers that a browser may read', async () => {
    const origin = 'https://shop.example.com'
    const client = await open(make, (app) => {
      app.use(cors({ origin, exposedHeaders: ['Idempotent-Replayed', 'Retry-After', 'Location'] }))
      app.use(make.json({ verify: keepRawBody }))
    })
    const headers = { origin }
    const sent = { key: `cors-${make === express5}-123456`, headers, body: { amount: 5 } }
    const first = await client.send(sent)
    const again = await client.send(sent)
    expectReplay(first, again)
    const refused = await client.send({ ...sent, body: { amount: 6 } })
    expectProblem(refused, 'key_reused')
    for (const answer of [first, again, refused]) {
      expect(answer.headers['access-control-allow-origin']).toBe(origin)
      expect(answer.headers['access-control-expose-headers']).toBe('Idempotent-Replayed,Retry-After,Location')
    }
    const asked = {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'idempotency-key',
    }
    const preflight = await client.send({
      method: 'OPTIONS',
      key: null,
      body: null,
      headers: { origin, ...asked },
    })
    expect(preflight.headers['access-control-allow-headers']).toBe('idempotency-key')
  })
})
