import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type pg from 'pg'
import { beforeEach, expect, it } from 'vitest'
import { httpPublisher, type Outbox, type OutboxEvent, outbox, relay } from '../../src/outbox/index.ts'
import { listening } from '../adapters/servers/listen.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { emitAlone, expectOrder, runUntil } from './office.ts'

let shop: Shop
let pool: pg.Pool
let office: Outbox
const heard = makeRecorder()
beforeEach(async () => {
  shop = await openShop()
  pool = shop.database.pool({ max: 2 })
  office = outbox(shop.open())
})

interface Post {
  readonly body: string
  readonly event: OutboxEvent
  readonly request: IncomingMessage
}

/** A server that answers as it is told; what it answers nothing to is posted again. */
async function serve(answer: (post: Post, response: ServerResponse) => void): Promise<string> {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    answer({ body, event: JSON.parse(body), request }, response)
  })
  const { port, close } = await listening(server)
  cleanUpLater(close)
  return `http://127.0.0.1:${port}/events`
}

const QUICK = { relayBackoffMinMs: 1, relayBackoffMaxMs: 5, eventTriesMax: 3 }
const makeEvents = (count: number, aggregates: number) =>
  Array.from({ length: count }, (_, n) => ({
    account: 'acct_1',
    type: 'größe',
    payload: n,
    aggregate: `a:${n % aggregates}`,
  }))

it('events are posted in order, signed over their bytes, and again when the answer was lost', async () => {
  const got: OutboxEvent[] = []
  const secret = 'whsec'
  const signature = (body: string) => createHmac('sha256', secret).update(body).digest('hex')
  // A key that is kept elsewhere is asked for: not awaited, the events would leave unsigned.
  const sign = async (body: string) => ({ 'x-signature': signature(body) })
  let posts = 0
  const url = await serve(({ body, event, request }, response) => {
    posts += 1
    expect(request.headers['x-signature']).toBe(signature(body))
    expect(request.headers['onlyonce-event-id']).toBe(event.id)
    expect(decodeURIComponent(request.headers['onlyonce-event-type'] as string)).toBe('größe')
    expect(request.headers.authorization).toBe('Bearer a')
    got.push(event)
    // It has taken the event, and nobody hears of it.
    if (posts % 17 === 5) request.socket.destroy()
    else response.writeHead(posts % 19 === 7 ? 503 : 204).end()
  })
  const worker = relay(shop.open(), {
    destinations: { http: httpPublisher({ url, sign, headers: { authorization: 'Bearer a' } }) },
    ...QUICK,
    eventTriesMax: 1_000,
  })
  await worker.runOnce()
  const ids = await emitAlone(pool, office.emit, makeEvents(120, 12))
  await runUntil('all are out', async () => (await office.lag()).every(({ count }) => count === 0), worker)
  expect(new Set(got.map(({ id }) => id))).toEqual(new Set(ids))
  expect(got.length).toBeGreaterThan(ids.length)
  // At least once: without what came again, the order is whole.
  const seen = new Set<string>()
  expectOrder(got.filter(({ id }) => !seen.has(id) && seen.add(id)))
})

it('what is refused is parked, redirects are not followed, and 410 means gone', async () => {
  let answer: number | 'redirect' = 422
  const asked: string[] = []
  const url = await serve(({ request, event }, response) => {
    asked.push(request.url!)
    if (event.payload === 'good') response.writeHead(200).end('x'.repeat(100_000))
    else if (answer === 'redirect') response.writeHead(307, { location: '/elsewhere' }).end()
    else response.writeHead(answer).end()
  })
  const worker = relay(shop.open({ observe: heard }), {
    destinations: { http: httpPublisher({ url }) },
    ...QUICK,
  })
  await worker.runOnce()
  const emitOne = (payload: string) =>
    emitAlone(pool, office.emit, { account: 'acct_1', type: 't', payload, aggregate: payload })
  await emitOne('unwanted')
  await emitOne('good')
  await runUntil('it is parked', async () => (await office.parked()).items.length === 1, worker)
  expect((await office.parked()).items[0]!.failure.message).toBe('The answer was 422.')
  answer = 'redirect'
  await emitOne('moved')
  await runUntil(
    'it was tried',
    () => heard.of('outbox_failed').some(({ failure }) => failure.message.includes('307')),
    worker,
  )
  expect(new Set(asked)).toEqual(new Set(['/events']))
  expect((await office.parked()).items).toHaveLength(1)
  answer = 410
  await runUntil('it is gone', () => heard.of('outbox_failed').some(({ kind }) => kind === 'gone'), worker)
  expect(await office.lag()).toMatchObject([{ count: 1, parked: 1 }])
})

it('an address that never answers is given up in time, and a large body is not sent', async () => {
  let posts = 0
  const url = await serve(() => {
    posts += 1
  })
  const publisher = httpPublisher({ url, timeoutMs: 50, bodyMaxBytes: 1_000 })
  const event = { id: 'evt_1', account: 'a', type: 't', aggregate: null, sequence: null, emittedAt: 0 }
  const context = { signal: new AbortController().signal, destination: 'd' }
  expect(await publisher.publish([{ ...event, payload: 1 }], context)).toMatchObject({
    failed: [{ id: 'evt_1', error: { name: 'TimeoutError' } }],
    gone: false,
  })
  expect(posts).toBe(1)
  expect(await publisher.publish([{ ...event, payload: 'x'.repeat(2_000) }], context)).toMatchObject({
    failed: [{ id: 'evt_1', refused: true }],
  })
  expect(posts).toBe(1)
  expect(() => httpPublisher({ url: 'file:///etc/passwd' })).toThrow(
    expect.objectContaining({ code: 'option_invalid' }),
  )
})
