import { describe, expect, it } from 'vitest'
import { webhooks } from '../../src/webhooks/index.ts'
import { waitUntil } from '../contract/shop.ts'
import { runDry } from '../outbox/office.ts'
import { account, openDesk, openReceiver } from './desk.ts'

const other = 'acct_2:test'
const ALL = { from: 0, to: 9_000_000_000_000 }
const badOption = { code: 'option_invalid' }

describe('messages', () => {
  it('are listed newest first, in pages, by type and by time, of one account', async () => {
    const desk = await openDesk()
    const ids = [...(await desk.emit(4)), ...(await desk.emit(3, { type: 'refund.created' }))]
    const [foreign] = await desk.emit(1, { account: other })
    await desk.fanOut()
    // All in one millisecond but the last three: the id decides.
    await desk.shop.observer.query(
      `UPDATE onlyonce.webhook_messages SET created_at = to_timestamp(CASE type WHEN 'refund.created' THEN 2 ELSE 1 END)`,
    )
    const { list, get } = desk.hooks.messages
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const page = await list({ account, cursor, limit: 2 })
      expect(page.items.length).toBeLessThanOrEqual(2)
      seen.push(...page.items.map(({ id }) => id))
      cursor = page.cursor
    } while (cursor !== null)
    const sorted = [...ids.slice(4).sort().reverse(), ...ids.slice(0, 4).sort().reverse()]
    expect(seen).toEqual(sorted)
    const idsOf = async (call: object) => (await list({ account, ...call })).items.map(({ id }) => id)
    expect(await idsOf({ types: ['refund.created'] })).toEqual(sorted.slice(0, 3))
    expect(await idsOf({ types: [] })).toEqual([])
    expect(await idsOf({ from: 2_000 })).toEqual(sorted.slice(0, 3))
    expect(await idsOf({ to: 2_000 })).toEqual(sorted.slice(3))
    expect(await get({ account, id: ids[0]! })).toEqual({
      id: ids[0],
      type: 'payment.captured',
      data: { n: 0, amount: 1_050, note: 'größe' },
      aggregate: 'payment:0',
      sequence: 1,
      createdAt: 1_000,
    })
    const unknown = { code: 'webhook_message_unknown', status: 404 }
    await expect(get({ account, id: foreign! })).rejects.toMatchObject(unknown)
    await expect(get({ account, id: 'evt_1' })).rejects.toMatchObject(unknown)
    for (const wrong of [
      { limit: 0 },
      { limit: 501 },
      { cursor: 'x' },
      { cursor: 'WzEsMl0' },
      { from: -1 },
      { to: 1.5 },
      { types: 'a' },
    ]) {
      await expect(list({ account, ...(wrong as object) })).rejects.toMatchObject(badOption)
    }
  })
})

describe('deliveries', () => {
  it('are listed by endpoint and by message, in pages, of one account', async () => {
    const desk = await openDesk()
    const receiver = await openReceiver()
    const [one, two] = [
      await desk.hooks.endpoints.create({ account, url: receiver.url }),
      await desk.hooks.endpoints.create({ account, url: `${receiver.url}?two` }),
    ].map(({ endpoint }) => endpoint.id)
    const ids = await desk.send(3)
    const { list, attempts } = desk.hooks.deliveries
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const page = await list({ account, cursor, limit: 4 })
      seen.push(...page.items.map(({ message, endpoint }) => `${message} ${endpoint}`))
      cursor = page.cursor
    } while (cursor !== null)
    expect(seen).toEqual(
      ids
        .flatMap((id) => [`${id} ${one}`, `${id} ${two}`])
        .sort()
        .reverse(),
    )
    const ofTwo = await list({ account, endpoint: two!, limit: 2 })
    expect(ofTwo.items.map(({ message }) => message)).toEqual([...ids].sort().reverse().slice(0, 2))
    expect((await list({ account, endpoint: two!, cursor: ofTwo.cursor })).items).toHaveLength(1)
    expect((await list({ account, message: ids[0]! })).items).toHaveLength(2)
    expect((await list({ account, message: ids[0]!, endpoint: one! })).items).toMatchObject([
      { endpoint: one },
    ])
    expect((await list({ account: other })).items).toEqual([])
    expect((await list({ account: other, message: ids[0]!, endpoint: one! })).items).toEqual([])
    expect((await list({ account, endpoint: 'we_1' })).items).toEqual([])
    const of = { endpoint: one!, message: ids[0]! }
    expect(await attempts({ account, ...of })).toEqual([
      { fence: 1, endedAt: expect.any(Number), durationMs: expect.any(Number), status: 204, failure: null },
    ])
    expect(await attempts({ account: other, ...of })).toEqual([])
  })
})

describe('a replay', () => {
  it('of one message delivers the same bytes again, also to an endpoint that never got it', async () => {
    const desk = await openDesk()
    const [first, late] = [await openReceiver(), await openReceiver()]
    const { endpoint } = await desk.hooks.endpoints.create({ account, url: first.url })
    const [message] = await desk.send(1)
    const { replay, endpoints } = desk.hooks
    expect(await replay({ account, endpoint: endpoint.id, message: message! })).toEqual({
      count: 1,
      cursor: null,
    })
    await desk.deliver()
    expect(first.got).toHaveLength(2)
    expect(first.got[1]!.body).toEqual(first.got[0]!.body)
    const { endpoint: second } = await endpoints.create({ account, url: late.url, types: ['other'] })
    await replay({ account, endpoint: second.id, message: message! })
    await desk.deliver()
    expect(late.ids()).toEqual([message])
    const unknown = replay({
      account,
      endpoint: endpoint.id,
      message: 'evt_019a0000-0000-7000-8000-000000000001',
    })
    await expect(unknown).rejects.toMatchObject({ code: 'webhook_message_unknown' })
    const [foreign] = await desk.send(1, { account: other })
    const stolen = replay({ account, endpoint: endpoint.id, message: foreign! })
    await expect(stolen).rejects.toMatchObject({ code: 'webhook_message_unknown' })
    expect(await desk.rows('webhook_attempts')).toHaveLength(3)
  })

  it('of one that failed begins with its first attempt', async () => {
    const desk = await openDesk({ retryAfterMs: [60_000] })
    const receiver = await openReceiver()
    receiver.answer = (_, response) => void response.writeHead(503).end()
    const { endpoint } = await desk.hooks.endpoints.create({ account, url: receiver.url })
    const [message] = await desk.send(1)
    await desk.hurry()
    await desk.deliver()
    const list = async () => (await desk.hooks.deliveries.list({ account })).items
    expect(await list()).toMatchObject([{ state: 'failed', attempts: 2 }])
    await desk.hooks.replay({ account, endpoint: endpoint.id, message: message! })
    expect(await list()).toMatchObject([{ state: 'pending', attempts: 0, endedAt: null }])
    await desk.deliver()
    expect(await list()).toMatchObject([{ state: 'pending', attempts: 1 }])
    expect(await desk.rows('webhook_attempts')).toHaveLength(3)
  })

  it('of one whose last attempt is under way is not lost when that fails, and done when it succeeds', async () => {
    const desk = await openDesk({ retryAfterMs: [60_000] })
    const receiver = await openReceiver()
    const { endpoint } = await desk.hooks.endpoints.create({ account, url: receiver.url })
    const [message] = await desk.emit(1)
    await desk.fanOut()
    const list = async () => (await desk.hooks.deliveries.list({ account })).items
    /** Answered only when the delivery was asked for once more. */
    const whileUnderWay = async (status: number) => {
      receiver.answer = async (_, response) => {
        receiver.answer = (_got, next) => void next.writeHead(503).end()
        await desk.hooks.replay({ account, endpoint: endpoint.id, message: message! })
        response.writeHead(status).end()
      }
      await desk.hurry()
      await desk.deliver()
    }
    receiver.answer = (_, response) => void response.writeHead(503).end()
    await desk.deliver()
    await whileUnderWay(503)
    // At once once more, and then as after the first attempt.
    expect(receiver.got).toHaveLength(3)
    expect(await list()).toMatchObject([{ state: 'pending', attempts: 1, status: 503 }])
    await whileUnderWay(200)
    expect(receiver.got).toHaveLength(4)
    expect(await list()).toMatchObject([{ state: 'delivered', status: 200 }])
  })

  it('of a range takes what the endpoint wants, batch by batch, and goes on where it stopped', async () => {
    const desk = await openDesk()
    const receiver = await openReceiver()
    await desk.emit(1_200)
    await desk.emit(3, { type: 'refund.created' })
    await desk.fanOut()
    const { endpoint } = await desk.hooks.endpoints.create({
      account,
      url: receiver.url,
      types: ['payment.*'],
    })
    const range = { account, endpoint: endpoint.id, ...ALL }
    expect(await desk.hooks.replay(range)).toEqual({ count: 1_200, cursor: null })
    expect(await desk.rows('webhook_deliveries')).toHaveLength(1_200)
    const { items } = await desk.hooks.messages.list({ account, limit: 500 })
    const { id, createdAt } = items.at(-1)!
    const cursor = Buffer.from(JSON.stringify([createdAt, id])).toString('base64url')
    expect((await desk.hooks.replay({ ...range, cursor })).count).toBe(499 - 3)
    expect(await desk.hooks.replay({ ...range, to: 1 })).toEqual({ count: 0, cursor: null })
    await expect(desk.hooks.replay({ ...range, from: 2, to: 1 })).rejects.toMatchObject(badOption)
    await expect(desk.hooks.replay({ ...range, from: 'a' as unknown as number })).rejects.toMatchObject(
      badOption,
    )
  })
})

it('a secret that was rotated out is removed when its time is over, and no other', async () => {
  const desk = await openDesk()
  const receiver = await openReceiver()
  for (const keepMs of [1, 3_600_000]) {
    const { endpoint } = await desk.hooks.endpoints.create({ account, url: `${receiver.url}?${keepMs}` })
    await desk.hooks.endpoints.rotateSecret({ account, id: endpoint.id, keepMs })
  }
  expect(await desk.rows('webhook_secrets')).toHaveLength(4)
  await waitUntil('it is over', async () => {
    await runDry(webhooks(desk.once, { allowPrivate: true }).deliverer())
    return (await desk.rows('webhook_secrets')).length === 3
  })
  const { rows } = await desk.shop.observer.query(
    'SELECT FROM onlyonce.webhook_secrets WHERE expires_at <= clock_timestamp()',
  )
  expect(rows).toEqual([])
})

it('what is older than its retention is removed, but nothing that still waits, and removed endpoints at last', async () => {
  const desk = await openDesk({ retentionMs: 3_600_000 })
  const receiver = await openReceiver()
  const { endpoint } = await desk.hooks.endpoints.create({ account, url: receiver.url })
  const [old, waiting, young] = await desk.send(3)
  const age = `created_at = created_at - interval '2 hours'`
  await desk.shop.observer.query(`UPDATE onlyonce.webhook_messages SET ${age} WHERE id <> $1`, [
    young!.slice(4),
  ])
  receiver.answer = (_, response) => void response.writeHead(500).end()
  await desk.hooks.replay({ account, endpoint: endpoint.id, message: waiting! })
  const again = () => runDry(webhooks(desk.once, { allowPrivate: true, retentionMs: 3_600_000 }).deliverer())
  await again()
  const left = async () => (await desk.hooks.messages.list({ account })).items.map(({ id }) => id)
  expect([...(await left())].sort()).toEqual([waiting, young].sort())
  await expect(desk.hooks.messages.get({ account, id: old! })).rejects.toMatchObject({ status: 404 })
  expect(await desk.rows('webhook_attempts')).toHaveLength(3)
  await desk.hooks.endpoints.remove({ account, id: endpoint.id })
  await desk.shop.observer.query(
    `UPDATE onlyonce.webhook_endpoints SET changed_at = changed_at - interval '2 hours'`,
  )
  await desk.hurry()
  await again()
  expect(await desk.rows('webhook_endpoints')).toHaveLength(1)
  await desk.shop.observer.query(`UPDATE onlyonce.webhook_messages SET ${age}`)
  await again()
  await again()
  expect(await desk.rows('webhook_messages')).toEqual([])
  expect(await desk.rows('webhook_deliveries')).toEqual([])
  expect(await desk.rows('webhook_endpoints')).toEqual([])
})
