import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { webhooks } from '../../src/webhooks/index.ts'
import { openShop, waitUntil } from '../contract/shop.ts'
import { runDry } from '../outbox/office.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { account, openDesk, openReceiver } from './desk.ts'

describe('a webhook', () => {
  it('is posted once to every endpoint that wants it, signed so that the official library verifies it', async () => {
    const desk = await openDesk()
    const [all, some, other] = [await openReceiver(), await openReceiver(), await openReceiver()]
    const { endpoint, secret } = await desk.hooks.endpoints.create({
      account,
      url: all.url,
      description: 'all',
    })
    await desk.hooks.endpoints.create({ account, url: some.url, types: ['refund.*', 'payment.captured'] })
    await desk.hooks.endpoints.create({
      account,
      url: other.url,
      types: ['payment', 'payment.*'],
    })
    await desk.hooks.endpoints.create({ account: 'acct_2:test', url: other.url })
    const [captured] = await desk.send(1)
    const [refunded] = await desk.send(1, { type: 'refund.created' })
    await desk.deliver()
    expect(all.ids()).toEqual([captured, refunded])
    expect(some.ids()).toEqual([captured, refunded])
    expect(other.ids()).toEqual([captured])
    const { headers, body } = all.got[0]!
    const told = new Webhook(secret).verify(body.toString(), headers as Record<string, string>)
    expect(told).toEqual({
      id: captured,
      type: 'payment.captured',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      data: { n: 0, amount: 1_050, note: 'größe' },
      aggregate: 'payment:0',
      sequence: 1,
    })
    expect(headers['content-type']).toBe('application/json')
    const { items } = await desk.hooks.deliveries.list({ account, endpoint: endpoint.id })
    expect(items.map(({ message, state, status, attempts }) => [message, state, status, attempts])).toEqual([
      [refunded, 'delivered', 204, 1],
      [captured, 'delivered', 204, 1],
    ])
  })

  it('that comes out of the outbox twice is delivered once', async () => {
    const desk = await openDesk()
    const receiver = await openReceiver()
    await desk.hooks.endpoints.create({ account, url: receiver.url })
    const event = {
      account,
      type: 't',
      aggregate: null,
      sequence: null,
      payload: 1,
      emittedAt: 1_800_000_000_123,
    }
    const id = 'evt_019a0000-0000-7000-8000-000000000001'
    const context = { signal: new AbortController().signal, destination: 'webhooks' }
    await desk.once.start()
    for (const type of ['t', 't', 'changed']) {
      await desk.hooks.destination.publish([{ ...event, id, type }], context)
      await desk.deliver()
    }
    expect(receiver.ids()).toEqual([id])
    expect((await desk.hooks.messages.get({ account, id })).type).toBe('t')
  })

  it('is tried again with the same bytes, later each time, and given up after the last attempt', async () => {
    const heard = makeRecorder()
    const desk = await openDesk({}, { observe: heard })
    const receiver = await openReceiver()
    receiver.answer = (_, response) => void response.writeHead(500).end()
    const { endpoint, secret } = await desk.hooks.endpoints.create({ account, url: receiver.url })
    const [message] = await desk.send(1)
    const waits: number[] = []
    for (let n = 0; n < 10; n += 1) {
      const { rows } = await desk.shop.observer.query(
        'SELECT extract(epoch FROM due_at - clock_timestamp())::float8 AS s FROM onlyonce.webhook_deliveries',
      )
      waits.push(rows[0].s)
      await desk.deliver()
      expect(receiver.got).toHaveLength(n + 1)
      await desk.hurry()
      await desk.deliver()
    }
    const planned = [5, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
    for (const [n, seconds] of planned.entries()) {
      expect(waits[n]).toBeGreaterThan(seconds - 5)
      expect(waits[n]).toBeLessThan(seconds * 1.1 + 1)
    }
    expect(planned.reduce((sum, one) => sum + one) / 86_400).toBeGreaterThan(3)
    expect(receiver.got).toHaveLength(11)
    expect(new Set(receiver.got.map(({ body }) => body.toString())).size).toBe(1)
    expect(new Set(receiver.ids())).toEqual(new Set([message]))
    for (const { headers, body } of receiver.got) {
      new Webhook(secret).verify(body.toString(), headers as Record<string, string>)
    }
    await desk.hurry()
    await desk.deliver()
    const { items } = await desk.hooks.deliveries.list({ account })
    expect(items).toMatchObject([{ state: 'failed', attempts: 11, dueAt: null, status: 500 }])
    const attempts = await desk.hooks.deliveries.attempts({
      account,
      endpoint: endpoint.id,
      message: message!,
    })
    expect(attempts.map(({ status }) => status)).toEqual(Array(11).fill(500))
    expect(attempts.map(({ fence }) => fence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    expect(attempts[0]!.failure).toEqual({ code: 'status_500', message: 'The answer was 500.' })
    expect(heard.of('webhook_attempted').map(({ outcome }) => outcome)).toEqual([
      ...Array(10).fill('again'),
      'failed',
    ])
  })

  it('is not delivered by a redirect, a silence, a cut connection or a refused one', async () => {
    const desk = await openDesk({ timeoutMs: 1_000 })
    const elsewhere = await openReceiver()
    const answers: Record<string, Awaited<ReturnType<typeof openReceiver>>['answer']> = {
      redirect: (_, response) => void response.writeHead(307, { location: elsewhere.url }).end(),
      silence: () => {},
      cut: (_, response) => void response.destroy(),
    }
    for (const answer of Object.values(answers)) {
      const receiver = await openReceiver()
      receiver.answer = answer
      await desk.hooks.endpoints.create({ account, url: receiver.url })
    }
    await desk.hooks.endpoints.create({ account, url: 'http://127.0.0.1:1/nobody' })
    await desk.send(1)
    const { items } = await desk.hooks.deliveries.list({ account })
    expect(items.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending', 'pending'])
    expect(items.map(({ failure }) => failure!.code).sort()).toEqual([
      'ECONNREFUSED',
      'ECONNRESET',
      'status_307',
      'timeout',
    ])
    expect(elsewhere.got).toEqual([])
  })

  it('is delivered by an endless answer, of which nothing is read', async () => {
    const desk = await openDesk()
    const receiver = await openReceiver()
    receiver.answer = (_, response) => {
      response.writeHead(200)
      const more = () => void (response.destroyed || response.write('x'.repeat(65_536), more))
      more()
    }
    await desk.hooks.endpoints.create({ account, url: receiver.url })
    await desk.send(1)
    expect((await desk.hooks.deliveries.list({ account })).items).toMatchObject([{ state: 'delivered' }])
  })
})

it('410 disables the endpoint, what waits for it fails, and it can be enabled and replayed', async () => {
  const heard = makeRecorder()
  const desk = await openDesk({ perEndpoint: 1 }, { observe: heard })
  const receiver = await openReceiver()
  receiver.answer = (_, response) => void response.writeHead(410).end()
  const { endpoint } = await desk.hooks.endpoints.create({ account, url: receiver.url })
  const { id } = endpoint
  await desk.send(3)
  expect(receiver.got).toHaveLength(1)
  expect(await desk.hooks.endpoints.get({ account, id })).toMatchObject({
    state: 'disabled',
    disabledWhy: 'gone',
  })
  expect(heard.of('webhook_disabled')).toEqual([{ signal: 'webhook_disabled', account, endpoint: id }])
  const ended = (await desk.hooks.deliveries.list({ account })).items
  expect(ended.map(({ state }) => state)).toEqual(['failed', 'failed', 'failed'])
  expect(ended.map(({ failure }) => failure!.code).sort()).toEqual([
    'endpoint_disabled',
    'endpoint_disabled',
    'status_410',
  ])
  await desk.send(1)
  expect((await desk.hooks.deliveries.list({ account })).items).toHaveLength(3)
  const range = { account, endpoint: id, from: 0, to: 9_000_000_000_000 }
  await expect(desk.hooks.replay(range)).rejects.toMatchObject({
    code: 'webhook_endpoint_disabled',
    status: 409,
  })
  receiver.answer = (_, response) => void response.writeHead(200).end()
  expect(await desk.hooks.endpoints.enable({ account, id })).toMatchObject({
    state: 'enabled',
    disabledWhy: null,
  })
  expect(await desk.hooks.replay(range)).toEqual({ count: 4, cursor: null })
  await desk.deliver()
  expect(receiver.got).toHaveLength(5)
})

it('410 to what was posted before the endpoint was enabled again does not disable it once more', async () => {
  const desk = await openDesk({ perEndpoint: 2 })
  const receiver = await openReceiver()
  const answers: (() => void)[] = []
  receiver.answer = (_, response) => void answers.push(() => response.writeHead(410).end())
  const { endpoint } = await desk.hooks.endpoints.create({ account, url: receiver.url })
  const name = { account, id: endpoint.id }
  const state = async () => (await desk.hooks.endpoints.get(name)).state
  await desk.emit(3)
  await desk.fanOut()
  const worker = desk.hooks.deliverer()
  const first = worker.runOnce()
  await waitUntil('two are under way', () => answers.length === 2)
  answers[0]!()
  await waitUntil('it is disabled', async () => (await state()) === 'disabled')
  await first
  await desk.hooks.endpoints.enable(name)
  answers[1]!()
  await worker.drain()
  expect(await state()).toBe('enabled')
  receiver.answer = (_, response) => void response.writeHead(410).end()
  await desk.deliver()
  expect(await state()).toBe('disabled')
})

it('two deliverers side by side deliver each once when nothing fails', async () => {
  const desk = await openDesk({ perEndpoint: 8 })
  const receivers = await Promise.all([openReceiver(), openReceiver(), openReceiver()])
  for (const { url } of receivers) await desk.hooks.endpoints.create({ account, url })
  const ids = await desk.emit(60)
  await desk.fanOut()
  const another = webhooks(desk.shop.open(), { allowPrivate: true, perEndpoint: 8 })
  await Promise.all([desk.deliver(), runDry(another.deliverer())])
  for (const receiver of receivers) expect([...receiver.ids()].sort()).toEqual([...ids].sort())
  expect(await desk.rows('webhook_attempts')).toHaveLength(180)
})

it('a dead endpoint, and a long queue before it, hold nobody back', async () => {
  const desk = await openDesk({ timeoutMs: 30_000, atOnce: 6, perEndpoint: 2 })
  const [dead, alive] = [await openReceiver(), await openReceiver()]
  dead.answer = () => {}
  await desk.hooks.endpoints.create({ account, url: dead.url })
  await desk.emit(30)
  await desk.fanOut()
  await desk.hooks.endpoints.create({ account, url: alive.url })
  const ids = await desk.emit(12)
  await desk.fanOut()
  const worker = desk.hooks.deliverer()
  await waitUntil('the living one has all', async () => {
    await worker.runOnce()
    return alive.got.length === ids.length
  })
  expect([...alive.ids()].sort()).toEqual([...ids].sort())
  expect(dead.got).toHaveLength(2)
})

it('an account all of whose endpoints hang keeps others waiting for one post, and not for its queue', async () => {
  const desk = await openDesk({ timeoutMs: 300, atOnce: 4, perEndpoint: 1 })
  const [dead, alive] = [await openReceiver(), await openReceiver()]
  dead.answer = () => {}
  for (let n = 0; n < 5; n += 1) await desk.hooks.endpoints.create({ account, url: `${dead.url}?${n}` })
  await desk.emit(20)
  await desk.fanOut()
  const other = 'acct_2:test'
  await desk.hooks.endpoints.create({ account: other, url: alive.url })
  const worker = desk.hooks.deliverer()
  await worker.runOnce()
  const ids = await desk.emit(3, { account: other })
  await desk.fanOut()
  await waitUntil('the other account has all', async () => {
    await worker.runOnce()
    return alive.got.length === ids.length
  })
  expect(dead.got.length).toBeLessThan(20)
  await worker.drain()
})

it('what a deliverer has left is taken over after its lease, and whoever is late changes nothing', async () => {
  const desk = await openDesk({ timeoutMs: 30_000 })
  const receiver = await openReceiver()
  const late: (() => void)[] = []
  receiver.answer = (_, response) => {
    const status = receiver.got.length === 1 ? 500 : 200
    late.push(() => void response.writeHead(status).end())
  }
  await desk.hooks.endpoints.create({ account, url: receiver.url })
  await desk.emit(1)
  await desk.fanOut()
  const [first, second] = [desk.hooks.deliverer(), desk.hooks.deliverer()]
  void first.runOnce()
  await waitUntil('it is under way', () => receiver.got.length === 1)
  await second.runOnce()
  expect(receiver.got).toHaveLength(1)
  await desk.shop.observer.query('UPDATE onlyonce.webhook_deliveries SET lease_until = clock_timestamp()')
  void second.runOnce()
  await waitUntil('it is taken over', () => receiver.got.length === 2)
  late[1]!()
  await second.drain()
  late[0]!()
  await first.drain()
  const { items } = await desk.hooks.deliveries.list({ account })
  expect(items).toMatchObject([{ state: 'delivered', status: 200, attempts: 2 }])
  expect(await desk.rows('webhook_attempts')).toMatchObject([{ fence: '2', status: 200 }])
})

it('a store without a database has no webhooks, and options that are none are refused', async () => {
  const shop = await openShop()
  const refused = expect.objectContaining({ code: 'option_invalid' })
  for (const options of [
    { stray: 1 },
    { timeoutMs: 0 },
    { retryAfterMs: [0] },
    { retryAfterMs: 5 },
    { atOnce: 0 },
  ]) {
    expect(() => webhooks(shop.open(), options as object)).toThrow(refused)
  }
})
