/** Drives every route to every kind of answer that the OpenAPI document names, and compares. */
import { createHmac } from 'node:crypto'
import { callRefused } from 'onlyonce'
import { relay } from 'onlyonce/outbox'
import { beforeAll, describe, expect, it } from 'vitest'
import { backgroundOf } from '../workers.ts'
import { refundOf } from './charges.ts'
import { codesOf, type Document, mismatchesOf, type Seen } from './documented.ts'
import { openSandbox } from './sandbox.ts'
import {
  type Ask,
  openTestService,
  sendUnchecked,
  TEST_OPS_TOKEN,
  type TestService,
  testConfig,
} from './service.ts'

const TEA = { amount: 1_000, currency: 'EUR', payment_method: 'pm_card_visa' }
const HEX = '01928f3c5e7a7c3b9d2e4f5a6b7c8d9e'
/** Nobody is told by a test how a process dies, or what a socket says that stops in the middle. */
const NOT_DRIVEN = ['408', '417', '431', '500']
/** Only two operators at once come to this. */
const RACES = ['POST /ops/record/evidence 409']
const SIGNING_SECRET = 'whsec_of_the_test_that_drives_all'

const seen: Seen = new Map()
const mismatches: string[] = []
let shop: TestService
let document: Document
let ids: Record<string, string>

beforeAll(async () => {
  const { client } = await openSandbox()
  shop = await openTestService({
    gateways: { test: client },
    config: { webhookSecrets: [SIGNING_SECRET] },
  })
  document = (await shop.ask('/openapi.json')).body
  const payment = (await shop.post('/v1/payments', TEA)).body.id
  const refund = (await shop.post(`/v1/payments/${payment}/refunds`, { amount: 1 })).body.id
  const endpoint = (await shop.post('/v1/webhook-endpoints', { url: 'https://hooks.example.com/x' })).body.id
  const { accountId, keyId } = await shop.addCaller()
  ids = {
    payment,
    refund,
    id: endpoint,
    transfer: `trf_${HEX}`,
    key: 'a-key-of-nobody',
    account_id: accountId,
    mode: 'test',
    key_id: keyId,
  }
})

const RECORD = { account: 'acct_1:test', operation: 'payments.create', key: 'a-key-of-nobody' }
const SIGNED = { by: 'ann', why: 'a test' }
/** A body that each write takes. */
const BODIES: Readonly<Record<string, object>> = {
  'POST /v1/payments': TEA,
  'POST /v1/payments/{payment}/capture': {},
  'POST /v1/payments/{payment}/cancel': {},
  'POST /v1/payments/{payment}/refunds': { amount: 1 },
  'POST /v1/transfers': { destination: `acct_${HEX}`, amount: 1, currency: 'EUR' },
  'POST /v1/idempotency-keys': { operation: 'payments.create' },
  'POST /v1/webhook-endpoints': { url: 'https://hooks.example.com/y' },
  'PATCH /v1/webhook-endpoints/{id}': { description: 'another' },
  'POST /v1/webhook-endpoints/{id}/rotate-secret': {},
  'POST /v1/webhook-endpoints/{id}/replay': { event: 'evt_1' },
  'POST /ops/accounts': { name: 'One' },
  'PATCH /ops/accounts/{account_id}': { name: 'Two' },
  'POST /ops/accounts/{account_id}/api-keys': { mode: 'test' },
  'POST /ops/accounts/{account_id}/payers/forget': { mode: 'test', payer: 'alice', how: 'erase' },
  'POST /ops/record/decisions': { ...RECORD, ...SIGNED, decision: 'park' },
  'POST /ops/record/evidence': { ...RECORD, ...SIGNED, outcome: 'executed', gateway_id: 'pi_1' },
}

interface Route {
  readonly name: string
  readonly method: string
  readonly template: string
}

const routes = (): Route[] =>
  Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.keys(methods).map((name) => {
      const method = name.toUpperCase()
      return { name: `${method} ${template}`, method, template }
    }),
  )

const pathOf = ({ template, name }: Route, other: Record<string, string> = {}) => {
  const path = template.replaceAll(/\{(\w+)\}/g, (_, part: string) =>
    encodeURIComponent({ ...ids, ...other }[part]!),
  )
  return name === 'GET /ops/record' ? `${path}?${new URLSearchParams(RECORD)}` : path
}

const addEndpoint = async (url: string): Promise<string> =>
  (await shop.post('/v1/webhook-endpoints', { url })).body.id

/** One request of a route that is right, but for what is given. */
async function drive(at: TestService, route: Route, given: Ask = {}, path = pathOf(route)) {
  const { method, template, name } = route
  const apiKey = /^\/(?:ops|metrics)/.test(template) ? TEST_OPS_TOKEN : shop.apiKey
  const body = BODIES[name]
  const answer = await sendUnchecked(at.url, path, {
    method,
    apiKey,
    ...(body !== undefined && { body }),
    ...given,
  })
  mismatches.push(...mismatchesOf(document, { method, path, ...answer }, seen))
  return answer
}

/** An event of the processor that it has signed. */
function signed(): Ask {
  const body = JSON.stringify({ id: 'evt_1', object: 'event', type: 'charge.updated', data: { object: {} } })
  const at = Math.floor(Date.now() / 1_000)
  const v1 = createHmac('sha256', SIGNING_SECRET).update(`${at}.${body}`).digest('hex')
  return { body, headers: { 'stripe-signature': `t=${at},v1=${v1}` } }
}

const guarded = ({ template }: Route) => /^\/(?:v1|ops)\/|^\/metrics/.test(template)
const keyed = ({ template, method, name }: Route) =>
  template.startsWith('/v1/') && method !== 'GET' && name !== 'POST /v1/idempotency-keys'

describe('every route', () => {
  it('does what it is there for', async () => {
    const given: Record<string, Ask> = {}
    for (const route of routes()) {
      if (route.method === 'DELETE' || route.name === 'POST /webhooks/stripe') continue
      await drive(shop, route, given[route.name])
    }
  })

  it('refuses what it cannot read', async () => {
    for (const route of routes()) {
      const path = pathOf(route)
      expect
        .soft((await drive(shop, route, {}, `${path}${path.includes('?') ? '&' : '?'}a=%ff`)).status)
        .toBe(400)
      if (route.method === 'GET') continue
      await drive(shop, route, { body: 'x'.repeat(2_000_000) })
      await drive(shop, route, { body: 'a=1', headers: { 'content-type': 'text/plain' } })
      for (const body of ['{', '{"a":1,"a":2}', '{"a":"4242424242424242"}', '[]'])
        await drive(shop, route, { body })
    }
  })

  it('refuses whom it does not know', async () => {
    for (const route of routes().filter(guarded)) {
      expect.soft((await drive(shop, route, { apiKey: null })).status).toBe(401)
    }
  })

  it('refuses those who ask too often', async () => {
    const config = testConfig(shop.database, { RATE_LIMIT_TEST: '1', STRANGERS_PER_MINUTE: '1' })
    const { webhookSecrets } = shop.service.config
    const slow = await openTestService({
      database: shop.database,
      gateways: shop.service.gateways,
      config: { ...config, webhookSecrets },
    })
    const limited = (route: Route) => guarded(route) || route.name === 'POST /webhooks/stripe'
    for (const route of routes().filter(limited)) {
      const strange = !route.template.startsWith('/v1/')
      for (let tries = 0; tries < 3; tries += 1) await drive(slow, route, strange ? { apiKey: null } : {})
    }
  })

  it('says so where the database is away', async () => {
    const lone = await openTestService({
      gateways: shop.service.gateways,
      config: { webhookSecrets: shop.service.config.webhookSecrets },
    })
    const { apiKey, database } = lone
    await database.drop()
    for (const route of routes()) {
      const own = route.template.startsWith('/v1/')
        ? { apiKey }
        : route.name === 'POST /webhooks/stripe'
          ? signed()
          : {}
      const { status } = await drive(lone, route, own)
      if (guarded(route) && route.template !== '/metrics')
        expect.soft([status, route.name]).toEqual([503, route.name])
    }
  })
})

describe('every write with a key', () => {
  it('wants one', async () => {
    for (const route of routes().filter(keyed))
      expect.soft((await drive(shop, route, { key: '' })).status).toBe(400)
  })

  it('keeps to the deadline of its client', async () => {
    const config = testConfig(shop.database, { DEADLINE_HEADER: 'X-Deadline' })
    const at = await openTestService({ database: shop.database, gateways: shop.service.gateways, config })
    const headers = { 'x-deadline': '2020-01-01T00:00:00Z' }
    for (const route of routes().filter(keyed))
      expect.soft((await drive(at, route, { headers })).status).toBe(504)
  })

  it('knows a key that is in use for another request, and one of which nobody knows the outcome', async () => {
    for (const [i, route] of routes().filter(keyed).entries()) {
      const key = `a-key-in-doubt-${i}`
      // A refusal about an endpoint leaves no record: these are about one that is there, and of a URL that is free.
      const url = `https://hooks.example.com/doubt-${i}`
      const hooks = route.template.startsWith('/v1/webhook-endpoints')
      const id = hooks && route.template.includes('{id}') ? await addEndpoint(url) : ids.id
      const longAgo = '2020-01-01T00:00:00Z'
      const given = route.template.endsWith('/replay') ? { from: longAgo, to: longAgo } : BODIES[route.name]
      const first = route.name === 'POST /v1/webhook-endpoints' ? { url } : given
      const asked = { key, ...(first !== undefined && { body: first }) }
      await drive(shop, route, asked, pathOf(route, { id: id! }))
      const { rowCount } = await shop.service.pool.query(
        `UPDATE onlyonce.records SET state = 'parked', expires_at = NULL, lease_until = NULL, error_code = 'x', error_message = '',
           reply_status = NULL, reply_headers = NULL, reply_body = NULL, reply_schema = NULL, reply_key_id = NULL
         WHERE key = $1`,
        [key],
      )
      expect.soft([route.name, rowCount]).toEqual([route.name, 1])
      const parked = await drive(shop, route, asked, pathOf(route, { id: id! }))
      expect.soft([route.name, parked.status]).toEqual([route.name, 409])
      const other = { payment: `pay_${HEX}`, id: 'another' }
      const body = route.name === 'POST /v1/payments' ? { ...TEA, amount: 7 } : BODIES[route.name]
      const moved = route.name === 'POST /v1/transfers' ? { ...BODIES[route.name], amount: 2 } : body
      const named = route.name === 'POST /v1/webhook-endpoints' ? { url: 'https://other.example.com' } : moved
      const reused = await drive(
        shop,
        route,
        { key, ...(named !== undefined && { body: named }) },
        pathOf(route, other),
      )
      if (reused.status !== 404) expect.soft([route.name, reused.status]).toEqual([route.name, 422])
    }
  })
})

describe('what a route has of its own', () => {
  const post = (name: string, given: Ask, path?: string) => {
    const route = routes().find((one) => one.name === name)!
    return drive(shop, route, given, path ?? pathOf(route))
  }

  it('payments: declines, duplicates, states and limits', async () => {
    await post('POST /v1/payments', { body: { ...TEA, payment_method: 'pm_card_chargeDeclined' } })
    const once = { ...TEA, reference: 'answers', duplicates: 'refuse' }
    await post('POST /v1/payments', { body: once })
    expect.soft((await post('POST /v1/payments', { body: once })).status).toBe(409)
    const { apiKey } = await shop.addCaller('live')
    for (const { name } of routes().filter(
      ({ template, method }) => method === 'POST' && template.startsWith('/v1/payments'),
    ))
      expect.soft((await post(name, { apiKey })).status).toBe(403)
    expect
      .soft((await post('POST /v1/payments/{payment}/refunds', { body: { amount: 90_000 } })).status)
      .toBe(422)
  })

  it('what is not there', async () => {
    const nobody = {
      payment: `pay_${HEX}`,
      refund: `ref_${HEX}`,
      id: 'nobody',
      transfer: `trf_${HEX}`,
      account_id: `acct_${HEX}`,
      key_id: `key_${HEX}`,
    }
    for (const route of routes()) {
      if (!route.template.includes('{') || route.template.includes('{key}')) continue
      const { status } = await drive(shop, route, {}, pathOf(route, nobody))
      expect.soft([route.name, status]).toEqual([route.name, 404])
    }
  })

  it('webhook endpoints: what cannot be sent, and what is gone', async () => {
    await post('POST /v1/webhook-endpoints/{id}/replay', { body: { event: 'evt_of_nobody' } })
    await post('PATCH /v1/webhook-endpoints/{id}', { body: { state: 'disabled' } })
    expect
      .soft(
        (await post('POST /v1/webhook-endpoints/{id}/replay', { body: { event: 'evt_of_nobody' } })).status,
      )
      .toBeGreaterThan(400)
    const { body } = await shop.post('/v1/webhook-endpoints', { url: 'https://hooks.example.com/gone' })
    expect
      .soft((await post('DELETE /v1/webhook-endpoints/{id}', {}, `/v1/webhook-endpoints/${body.id}`)).status)
      .toBe(204)
  })

  it('payments that are held, transfers and events: what is there', async () => {
    const held = async () => (await shop.post('/v1/payments', { ...TEA, capture_method: 'manual' })).body.id
    for (const what of ['capture', 'cancel'])
      await post(`POST /v1/payments/{payment}/${what}`, {}, `/v1/payments/${await held()}/${what}`)
    const { accountId: destination } = await shop.addCaller()
    const sent = await post('POST /v1/transfers', { body: { destination, amount: 1, currency: 'EUR' } })
    await post('GET /v1/transfers/{transfer}', {}, `/v1/transfers/${sent.body.id}`)
    const longAgo = '2020-01-01T00:00:00Z'
    const { body: made } = await shop.post('/v1/webhook-endpoints', {
      url: 'https://hooks.example.com/again',
    })
    const again = { body: { from: longAgo, to: longAgo } }
    await post('POST /v1/webhook-endpoints/{id}/replay', again, `/v1/webhook-endpoints/${made.id}/replay`)
    const { destinations, jobs } = backgroundOf(shop.service)
    await relay(shop.service.once, { destinations, jobs }).runOnce()
    const [event] = (await shop.ask('/v1/events')).body.data
    await post('GET /v1/events/{id}', {}, `/v1/events/${event.id}`)
  })

  it('what the processor tells, signed', async () => {
    expect.soft((await post('POST /webhooks/stripe', signed())).status).toBe(204)
    const untyped = { body: '{}', headers: { 'content-type': '' } }
    expect.soft((await post('POST /webhooks/stripe', untyped)).status).toBe(415)
  })

  it('records: what cannot be decided', async () => {
    expect.soft((await post('POST /ops/record/decisions', {})).status).toBe(409)
    const refuse = async () => {
      throw callRefused(new Error('no'))
    }
    const gateways = { test: { ...shop.service.gateways.test!, refund: refuse } }
    const misread = await openTestService({ database: shop.database, gateways })
    const key = 'parked-for-the-answers'
    const { apiKey, account } = shop
    await misread.post(`/v1/payments/${ids.payment}/refunds`, { amount: 2 }, { apiKey, key })
    const record = { account, operation: 'refunds.create', key, ...SIGNED }
    const gatewayId = await refundOf(shop.service.gateways.test!, shop, record)
    const evidence = { ...record, outcome: 'executed', gateway_id: gatewayId }
    expect.soft((await post('POST /ops/record/evidence', { body: evidence })).status).toBe(200)
    const decision = { ...record, decision: 'executed', gateway_id: gatewayId }
    expect.soft((await post('POST /ops/record/decisions', { body: decision })).status).toBe(200)
  })
})

describe('the document', () => {
  it('names every answer that was got, with its code and its headers', () => {
    expect([...new Set(mismatches)].sort()).toEqual([])
  })

  it('names no answer that nobody gets', () => {
    const missing = routes().flatMap(({ name, method, template }) => {
      const named = Object.keys(document.paths[template]![method.toLowerCase()]!.responses)
      return named
        .filter((status) => !NOT_DRIVEN.includes(status) && !seen.get(name)?.has(status))
        .map((status) => `${name} ${status}`)
        .filter((missed) => !RACES.includes(missed))
    })
    expect(missing).toEqual([])
  })

  it('tells for each refusal its codes, and what to do', () => {
    for (const { name, method, template } of routes()) {
      const { responses } = document.paths[template]![method.toLowerCase()]!
      for (const [status, answer] of Object.entries(responses)) {
        if (Number(status) < 400) continue
        const { description } = answer as unknown as { description: string }
        expect.soft(codesOf(answer).length, `${name} ${status}`).toBeGreaterThan(0)
        for (const code of codesOf(answer)) expect.soft(description).toMatch(new RegExp(`\`${code}\`: [A-Z]`))
      }
    }
  })
})
