import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { outbox } from 'onlyonce/outbox'
import { verifyWebhook } from 'onlyonce/webhooks'
import { describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { runWorkers } from '../workers.ts'
import { openTestService } from './service.ts'

const shared = await openTestService({ config: { webhooksAllowPrivate: true } })
const { ask, post, service, account } = shared
const workers = runWorkers(service, { everyMs: 20 })
cleanUpLater(() => workers.stop())
const PATH = '/v1/webhook-endpoints'

interface Heard {
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Somebody who takes webhooks. */
async function openReceiver(): Promise<{ url: string; heard: Heard[] }> {
  const heard: Heard[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    heard.push({ headers: request.headers, body: Buffer.concat(chunks) })
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(async () => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`, heard }
}

async function emit(type: string, of = account): Promise<void> {
  const client = await service.pool.connect()
  try {
    await client.query('BEGIN')
    await outbox(service.once).emit(client, {
      account: of,
      type,
      aggregate: 'payment:pay_1',
      payload: { a: 1 },
    })
    await client.query('COMMIT')
  } finally {
    client.release()
  }
}

describe('webhook endpoints', () => {
  it('are made once for a key, whose replay shows the same secret, which nothing else does', async () => {
    const { url } = await openReceiver()
    const key = 'make-an-endpoint-1'
    const made = await post(PATH, { url, types: ['payment.*'] }, { key })
    expect(made.status, made.text).toBe(201)
    expect(made.body.secret).toMatch(/^whsec_/)
    const again = await post(PATH, { url, types: ['payment.*'] }, { key })
    expect(again.text).toBe(made.text)
    const { secret: _, ...shown } = made.body
    expect((await ask(`${PATH}/${made.body.id}`)).body).toEqual(shown)
    const list = await ask(PATH)
    expect(list.body.data).toEqual([shown])
    expect(list.text).not.toContain('whsec_')
  })

  it('hear what happens, signed; and again when they ask for it', async () => {
    const { url, heard } = await openReceiver()
    const { body: endpoint } = await post(PATH, { url, types: ['refund.created'] })
    await emit('refund.created')
    await waitUntil('the webhook has come', () => heard.length === 1)
    const { headers, body } = heard[0]!
    const { id } = verifyWebhook({ scheme: 'standard', headers, body, secrets: [endpoint.secret] })

    const { body: event } = await ask(`/v1/events/${id}`)
    expect(event).toMatchObject({ id, type: 'refund.created', data: { a: 1 }, aggregate: 'payment:pay_1' })
    const { body: events } = await ask('/v1/events?type=refund.created&limit=1')
    expect(events).toEqual({ data: [event], has_more: false, next_cursor: null })

    const replayed = await post(`${PATH}/${endpoint.id}/replay`, { event: id })
    expect(replayed.body, replayed.text).toEqual({ count: 1, next_cursor: null })
    await waitUntil('it has come again', () => heard.length === 2)
    expect(heard[1]!.body).toEqual(body)

    const range = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
    expect((await post(`${PATH}/${endpoint.id}/replay`, range)).body).toEqual({ count: 1, next_cursor: null })
    await waitUntil('and once more', () => heard.length === 3)
    await waitUntil('that is known', async () => {
      const { body: page } = await ask(`${PATH}/${endpoint.id}/deliveries`)
      return page.data[0].state === 'delivered' && page.data[0].event === id && page.data[0].status === 204
    })
  })

  it('are changed, disabled, given another secret, and removed', async () => {
    const { url } = await openReceiver()
    const { body: endpoint } = await post(PATH, { url })
    const path = `${PATH}/${endpoint.id}`
    const changed = await ask(path, { method: 'PATCH', body: { description: 'Ours', state: 'disabled' } })
    expect(changed.body, changed.text).toMatchObject({
      description: 'Ours',
      state: 'disabled',
      disabled_why: 'asked',
    })
    expect((await post(`${path}/replay`, { event: 'evt_1' })).body.code).toBe('webhook_endpoint_disabled')
    const rotated = await post(`${path}/rotate-secret`, { keep_old_for: 3_600 })
    expect(rotated.status, rotated.text).toBe(200)
    expect(rotated.body.secret).toMatch(/^whsec_/)
    expect(rotated.body.secret).not.toBe(endpoint.secret)
    const key = 'remove-an-endpoint-1'
    expect((await ask(path, { method: 'DELETE', key })).status).toBe(204)
    expect((await ask(path, { method: 'DELETE', key })).headers.get('idempotent-replayed')).toBe('true')
    expect((await ask(path)).body.code).toBe('webhook_endpoint_unknown')
  })

  it('and events of one account, or of one mode, are not there for another', async () => {
    const { url } = await openReceiver()
    const { body: endpoint } = await post(PATH, { url })
    await emit('account.event')
    await waitUntil(
      'it is kept',
      async () => (await ask('/v1/events?type=account.event')).body.data.length === 1,
    )
    const { id } = (await ask('/v1/events?type=account.event')).body.data[0]
    for (const { apiKey } of [await shared.addCaller(), await shared.addCaller('live')]) {
      const paths = [`${PATH}/${endpoint.id}`, `${PATH}/${endpoint.id}/deliveries`, `/v1/events/${id}`]
      const seen = await Promise.all(paths.map((path) => ask(path, { apiKey })))
      expect(seen.map(({ status }) => status)).toEqual([404, 404, 404])
      expect((await ask('/v1/events', { apiKey })).body.data).toEqual([])
      const write = { apiKey, method: 'DELETE' }
      expect((await ask(`${PATH}/${endpoint.id}`, write)).status).toBe(404)
    }
    expect((await ask(`${PATH}/${endpoint.id}`)).status).toBe(200)
  })

  it.each<[string, string, unknown]>([
    [PATH, 'POST', { url: 'nonsense' }],
    [PATH, 'POST', { url: 'ftp://127.0.0.1/' }],
    [PATH, 'POST', { url: 'https://shop.example', types: [] }],
    [PATH, 'POST', { url: 'https://shop.example', types: ['*payment'] }],
    [PATH, 'POST', { url: 'https://shop.example', secret: 'mine' }],
    [`${PATH}/we_1`, 'PATCH', {}],
    [`${PATH}/we_1/replay`, 'POST', {}],
    [
      `${PATH}/we_1/replay`,
      'POST',
      { event: 'evt_1', from: '2000-01-01T00:00:00Z', to: '2000-01-01T00:00:00Z' },
    ],
    [`${PATH}/we_1/replay`, 'POST', { from: '2000-01-01T00:00:00Z' }],
    [`${PATH}/we_1/replay`, 'POST', { from: 'yesterday', to: 'today' }],
    ['/v1/events?cursor=nonsense', 'GET', undefined],
    ['/v1/events?limit=0', 'GET', undefined],
    ['/v1/events?limit=101', 'GET', undefined],
    ['/v1/events?limit=1e1', 'GET', undefined],
    ['/v1/events?limit=', 'GET', undefined],
    ['/v1/events?limit=1&limit=2', 'GET', undefined],
    ['/v1/events?from=yesterday', 'GET', undefined],
  ])('refuse %s %s %j', async (path, method, body) => {
    const answer = await ask(path, { method, ...(body !== undefined && { body }) })
    expect([answer.status, answer.headers.get('content-type')], answer.text).toEqual([
      400,
      'application/problem+json',
    ])
  })
})

it('a refusal about an endpoint has done nothing, and leaves its key to the corrected request', async () => {
  const { url } = await openReceiver()
  const taken = (await post(PATH, { url })).body
  const key = 'a-key-that-stays-free'
  const said = { retryable: false, executed: 'not_by_this_request' }
  const refused = await post(PATH, { url }, { key })
  expect(refused.body).toMatchObject({ ...said, status: 409, code: 'webhook_url_taken' })
  expect((await ask(`/v1/idempotency-keys/${key}`)).body).toMatchObject({ known: false })
  const odd = { event: undefined, from: '2000-01-01T00:00:00Z', to: '2001-01-01T00:00:00Z', cursor: 'odd' }
  const replay = await post(`${PATH}/${taken.id}/replay`, odd, { key })
  expect(replay.body).toMatchObject({ ...said, status: 400, field: 'cursor' })
  const nowhere = await ask(`${PATH}/we_1`, { method: 'DELETE', key })
  expect(nowhere.body).toMatchObject({ ...said, status: 404, code: 'webhook_endpoint_unknown' })
  expect((await ask(`/v1/idempotency-keys/${key}`)).body).toMatchObject({ known: false })
  const corrected = await post(PATH, { url: `${url}/another` }, { key })
  expect(corrected.status, corrected.text).toBe(201)
})

it('no endpoint is at a private address where that is not allowed', async () => {
  const closed = await openTestService()
  for (const url of ['https://127.0.0.1/', 'https://10.0.0.1/', 'https://[::1]/', 'http://shop.example/']) {
    const { status, body } = await closed.post(PATH, { url })
    expect([status, body.code], url).toEqual([400, 'webhook_url_refused'])
  }
})
