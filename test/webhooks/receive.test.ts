import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { OnlyonceError } from '../../src/index.ts'
import { relay } from '../../src/outbox/index.ts'
import { type ReceivedWebhook, receiveWebhook, signWebhook, verifyWebhook } from '../../src/webhooks/index.ts'
import { listening } from '../adapters/servers/listen.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { inTransaction, runDry, runUntil } from '../outbox/office.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

const account = 'acct_1:test'
const secret = `whsec_${randomBytes(32).toString('base64')}`

/** A server as the docs have it: verify, keep, answer. */
async function openInbox(shop: Shop) {
  const once = shop.open()
  const server = createServer(async (request, response) => {
    try {
      const body = await buffer(request)
      const { id, payload } = verifyWebhook({
        scheme: 'standard',
        headers: request.headers,
        body,
        secrets: secret,
      })
      const { outcome } = await receiveWebhook(once, { account, source: 'bank', id, payload })
      response.writeHead(200).end(outcome)
    } catch (error) {
      response.writeHead(error instanceof OnlyonceError ? error.status : 500).end()
    }
  })
  const { port, close } = await listening(server)
  cleanUpLater(close)
  return async (id: string, data: object, headers?: Record<string, string>) => {
    const body = Buffer.from(JSON.stringify(data))
    const signed = headers ?? signWebhook({ scheme: 'standard', id, body, secrets: secret })
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers: signed })
    return { status: answer.status, text: await answer.text() }
  }
}

const jobs = async (shop: Shop) => (await shop.observer.query('SELECT * FROM onlyonce.jobs')).rows

describe('a webhook that comes in', () => {
  it('is acknowledged first and processed after, again and again until that succeeds', async () => {
    const shop = await openShop()
    const send = await openInbox(shop)
    expect(await send('msg_1', { n: 1 })).toEqual({ status: 200, text: 'staged' })
    const got: ReceivedWebhook[] = []
    const worker = relay(shop.open(), {
      jobs: {
        'webhook.bank': async ({ payload }) => {
          got.push(payload as ReceivedWebhook)
          if (got.length < 3) throw new Error('not yet')
        },
      },
      jobBackoffMinMs: 1,
      jobBackoffMaxMs: 5,
    })
    await runUntil('it is done', async () => (await jobs(shop)).length === 0, worker)
    expect(got).toEqual(Array(3).fill({ source: 'bank', id: 'msg_1', body: '{"n":1}' }))
  })

  it('is kept once, however often and at whatever moment it comes', async () => {
    const shop = await openShop()
    const sends = await Promise.all([openInbox(shop), openInbox(shop)])
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => sends[n % 2]!('msg_1', { n: 1 })))
    expect(answers.map(({ text }) => text).sort()).toEqual([...Array(19).fill('seen'), 'staged'])
    expect(await jobs(shop)).toHaveLength(1)
  })

  it('is dropped a week late, when its job is long done and removed', async () => {
    const shop = await openShop()
    const send = await openInbox(shop)
    const ran: number[] = []
    const count = { 'webhook.bank': async () => void ran.push(1) }
    await send('msg_1', { n: 1 })
    await runDry(relay(shop.open(), { jobs: count }))
    await shop.observer.query(`UPDATE onlyonce.inbox SET seen_at = clock_timestamp() - interval '8 days'`)
    // One that has not removed anything yet does so in its first run.
    await runDry(relay(shop.open(), { jobs: count }))
    expect(await send('msg_1', { n: 1 })).toEqual({ status: 200, text: 'seen' })
    await runDry(relay(shop.open(), { jobs: count }))
    expect(ran).toHaveLength(1)
    expect(await jobs(shop)).toEqual([])
  })

  it('may come in any order: each is taken for itself', async () => {
    const shop = await openShop()
    const send = await openInbox(shop)
    for (const n of [3, 1, 2, 1, 3]) await send(`msg_${n}`, { n })
    const seen: string[] = []
    await runDry(
      relay(shop.open(), {
        jobs: { 'webhook.bank': async ({ payload }) => void seen.push((payload as ReceivedWebhook).id) },
      }),
    )
    expect(seen.sort()).toEqual(['msg_1', 'msg_2', 'msg_3'])
  })

  it('that is forged leaves nothing', async () => {
    const shop = await openShop()
    const send = await openInbox(shop)
    const forged = signWebhook({
      scheme: 'standard',
      id: 'msg_1',
      body: Buffer.from('{"n":2}'),
      secrets: secret,
    })
    expect((await send('msg_1', { n: 1 }, { ...forged })).status).toBe(400)
    expect((await send('msg_1', { n: 1 }, {})).status).toBe(400)
    await shop.open().start()
    expect(await jobs(shop)).toEqual([])
    expect((await shop.observer.query('SELECT * FROM onlyonce.inbox')).rows).toEqual([])
  })
})

describe('receiveWebhook', () => {
  const call = { account, source: 'bank', id: 'msg_1', payload: Buffer.from('{}') }

  it('in a transaction of the caller is as durable as that, and no more', async () => {
    const shop = await openShop()
    const [once, pool] = [shop.open(), shop.database.pool({ max: 2 })]
    const failed = inTransaction(pool, async (tx) => {
      expect(await receiveWebhook(once, { ...call, tx })).toMatchObject({ outcome: 'staged' })
      throw new Error('rolled back')
    })
    await expect(failed).rejects.toThrow('rolled back')
    expect(await jobs(shop)).toEqual([])
    const received = await inTransaction(pool, (tx) => receiveWebhook(once, { ...call, job: 'settle', tx }))
    expect(received).toMatchObject({ outcome: 'staged', jobId: expect.stringMatching(/^job_/) })
    expect(await inTransaction(pool, (tx) => receiveWebhook(once, { ...call, tx }))).toEqual({
      outcome: 'seen',
    })
    expect(await receiveWebhook(once, call)).toEqual({ outcome: 'seen' })
    expect(await jobs(shop)).toMatchObject([{ job: 'settle', account }])
  })

  it('tells messages of other sources and accounts apart', async () => {
    const shop = await openShop()
    const once = shop.open()
    for (const of of [{}, { source: 'other' }, { account: 'acct_2' }]) {
      expect(await receiveWebhook(once, { ...call, ...of })).toMatchObject({ outcome: 'staged' })
    }
  })

  it('refuses what it cannot keep letter for letter', async () => {
    const shop = await openShop()
    const once = shop.open()
    const bad = { ...call, payload: Buffer.from([0xff, 0xfe]) }
    await expect(receiveWebhook(once, bad)).rejects.toMatchObject({ code: 'webhook_payload_invalid' })
    const text = { ...call, payload: '{}' as unknown as Buffer }
    await expect(receiveWebhook(once, text)).rejects.toMatchObject({ code: 'webhook_body_not_raw' })
    for (const wrong of [{ source: '' }, { id: 'a\0b' }, { id: 'x'.repeat(256) }, { account: '' }]) {
      await expect(receiveWebhook(once, { ...call, ...wrong })).rejects.toMatchObject({ status: 500 })
    }
    const odd = { ...call, payload: Buffer.from('\ufeff{"a":"\\u0000\0"}') }
    await receiveWebhook(once, odd)
    const [job] = await jobs(shop)
    expect(JSON.parse(job!.payload).body).toBe(odd.payload.toString())
  })
})
