import { randomUUID } from 'node:crypto'
import { type FastifyRequest, fastify } from 'fastify'
import { beforeAll, expect, test } from 'vitest'
import { idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { type OpenOptions, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { Client } from './client.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

type Account = (request: FastifyRequest) => string | Promise<string>

/** A server whose hooks leave traces, and a key whose reply it has replayed a moment ago. */
async function openReplayed(options: OpenOptions = {}, account: Account = () => 'acct_1') {
  const once = shop.open(options)
  const app = fastify({ forceCloseConnections: true })
  cleanUpLater(() => app.close())
  let responses = 0
  app.addHook('onRequest', async (_, reply) => {
    reply.header('x-hook', 'before')
  })
  app.addHook('onResponse', async () => {
    responses += 1
  })
  await app.register(idempotency, { once, account })
  app.post('/things', { preHandler: idempotent() }, async (_, reply) =>
    reply.code(201).header('location', '/things/1').send({ id: randomUUID(), text: 'ä€' }),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  const client = new Client((app.server.address() as { port: number }).port)
  const sent = { key: randomUUID(), body: { amount: 1 } }
  const first = await client.send(sent)
  const replay = await client.send(sent)
  expect(replay.headers['idempotent-replayed']).toBe('true')
  return { once, client, sent, first, replay, countResponses: () => responses }
}

async function removeRecord(key: string): Promise<void> {
  const { rowCount } = await shop.observer.query('DELETE FROM onlyonce.records WHERE key = $1', [key])
  expect(rowCount).toBe(1)
}

const withoutDate = (headers: object) => ({ ...headers, date: null })

test.each<[string, Account]>([
  ['at once', () => 'acct_1'],
  ['later', async () => 'acct_1'],
])(
  'what was replayed a moment ago is replayed without the store, with an account that is known %s',
  async (_, account) => {
    const { client, sent, first, replay, countResponses } = await openReplayed({}, account)
    await removeRecord(sent.key)
    const again = await client.send(sent)
    expect(again.status).toBe(201)
    expect(again.body).toEqual(first.body)
    expect(withoutDate(again.headers)).toEqual(withoutDate(replay.headers))
    expect(again.headers).toMatchObject({ location: '/things/1', 'x-hook': 'before' })
    await waitUntil('the hooks after the response have run', async () => countResponses() === 3)
  },
)

test('another request under the key is refused all the same', async () => {
  const { client, sent } = await openReplayed()
  const other = await client.send({ ...sent, body: { amount: 2 } })
  expect([other.status, other.json().code]).toEqual([422, 'key_reused'])
})

test('where somebody observes, every replay is told', async () => {
  const heard = makeRecorder()
  const { client, sent } = await openReplayed({ observe: heard })
  await removeRecord(sent.key)
  expect((await client.send(sent)).headers['idempotent-replayed']).toBe('true')
  expect(heard.of('call_ended').map(({ outcome }) => outcome)).toEqual(['executed', 'replayed', 'replayed'])
})

test('a door that was closed replays nothing', async () => {
  const { once, client, sent } = await openReplayed()
  await once.close()
  const refused = await client.send(sent)
  expect([refused.status, refused.json().code]).toEqual([503, 'closed'])
})
