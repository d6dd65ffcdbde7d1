/** A client that hangs up before it is answered, again and again: what was counted for it has to be given back. */
import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { networkOf, Strangers } from '../api/strangers.ts'
import { openSandbox } from './sandbox.ts'
import { openTestService, type TestService, testConfig } from './service.ts'

const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
const AT_ONCE_MAX = 3
const { client } = await openSandbox()
const database = await freshDatabase()

/** Its processor answers when `answer` is called. */
async function openSlow() {
  const processor = new EventEmitter()
  const asked = once(processor, 'asked')
  const answered = once(processor, 'answer')
  const authorize: typeof client.authorize = async (...given) => {
    processor.emit('asked')
    await answered
    return await client.authorize(...given)
  }
  const service = await openTestService({
    database,
    gateways: { test: { ...client, authorize } },
    config: testConfig(database, {
      REQUESTS_PER_ACCOUNT: `${AT_ONCE_MAX}`,
      REQUESTS_AT_ONCE: `${AT_ONCE_MAX}`,
    }),
  })
  return { service, asked, answer: () => processor.emit('answer') }
}

const head = ({ apiKey }: TestService, line: string, more = '') =>
  `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${apiKey}\r\n${more}\r\n`

/** Sends bytes over a connection of their own. What it returns hangs up without a goodbye. */
async function sendOver({ url }: TestService, bytes: string): Promise<() => void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {}).resume()
  await once(socket, 'connect')
  socket.write(bytes)
  return () => socket.resetAndDestroy()
}

/** How many requests have reached the service since. */
function countRequests({ api }: TestService): () => number {
  let came = 0
  api.server.on('request', () => {
    came += 1
  })
  return () => came
}

async function allHaveGone({ api }: TestService): Promise<void> {
  const count = promisify(api.server.getConnections.bind(api.server))
  await waitUntil('the service has no connection', async () => (await count()) === 0)
}

/** Both bounds would refuse it: that of the account, and that of the process. */
async function expectRoom(service: TestService): Promise<void> {
  const { status, text } = await service.post('/v1/payments', TEA, { headers: { connection: 'close' } })
  expect(status, text).toBe(201)
}

describe('a client that hangs up', () => {
  it('while its API key is looked up leaves no place taken', async () => {
    const { service, answer } = await openSlow()
    answer()
    const came = countRequests(service)
    const holder = await database.direct({ max: 1 }).connect()
    await holder.query('BEGIN; LOCK TABLE payments.api_keys')
    const sent = head(service, 'GET /v1/balances')
    const clients = Array.from({ length: 2 * AT_ONCE_MAX }, () => sendOver(service, sent))
    const hangUps = await Promise.all(clients)
    await waitUntil('all were heard', () => came() === 2 * AT_ONCE_MAX)
    for (const hangUp of hangUps) hangUp()
    await allHaveGone(service)
    await holder.query('ROLLBACK')
    holder.release()
    await expectRoom(service)
  })

  it('with several requests under way on one connection leaves no place taken', async () => {
    const { service, answer, asked } = await openSlow()
    const came = countRequests(service)
    const body = JSON.stringify(TEA)
    const key = 'Content-Type: application/json\r\nIdempotency-Key: sent-before-others\r\n'
    const slow = head(service, 'POST /v1/payments', `${key}Content-Length: ${body.length}\r\n`) + body
    const behind = head(service, 'GET /v1/balances').repeat(AT_ONCE_MAX - 1)
    const hangUp = await sendOver(service, slow + behind)
    await waitUntil('all were heard', () => came() === AT_ONCE_MAX)
    await asked
    const look = () => service.ask('/v1/balances', { headers: { connection: 'close' } })
    const full = await look()
    expect([full.status, full.headers.get('stripe-rate-limited-reason')]).toEqual([
      429,
      'account-concurrency',
    ])
    hangUp()
    await allHaveGone(service)
    // One place was that of the first request, so there has to be room for more than one.
    const waiting = service.post('/v1/payments', TEA)
    await waitUntil('it was heard', () => came() === AT_ONCE_MAX + 2)
    expect((await look()).status).toBe(200)
    answer()
    expect((await waiting).status).toBe(201)
  })
})

describe('the address of a client that has hung up', () => {
  it('is known to what gives its try back', () => {
    const strangers = new Strangers(1, () => 0)
    const request = { ip: '192.0.2.1' as string | undefined } as { ip: string }
    const giveBack = strangers.take(request)
    delete (request as { ip?: string }).ip
    giveBack()
    expect(() => strangers.take({ ip: '192.0.2.1' })).not.toThrow()
    expect(() => strangers.take({ ip: '192.0.2.1' })).toThrow()
  })

  it('may be gone before the request is looked at', () => {
    expect(networkOf(undefined)).toBe('gone')
  })
})
