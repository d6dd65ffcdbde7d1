/** A stranger who wants a limit switched off: for a card, for an account, or for everybody. */
import { request } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { makeApiKey } from '../accounts/api-key.ts'
import { CAN_WRITE } from '../api/health.ts'
import { networkOf, Strangers } from '../api/strangers.ts'
import { makeId } from '../ids.ts'
import { openSandbox } from './sandbox.ts'
import { type Answer, openTestService, type TestCaller, type TestService, testConfig } from './service.ts'

const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
const { gateway, client } = await openSandbox({}, { timeoutMs: 10_000 })
const charges = async () => (await gateway.state()).movements.capture

const database = await freshDatabase()
/** All on one database, as processes side by side are. */
async function open(env: Readonly<Record<string, string>>): Promise<TestService> {
  const { limits, trustedProxies, database: place } = testConfig(database, env)
  return await openTestService({
    database,
    config: { limits, trustedProxies, database: place },
    gateways: { test: client },
  })
}

let made = 0
const newKey = () => `hostile-${++made}-attempt`
const pay = (service: TestService, { apiKey }: TestCaller, key = newKey(), changes: object = {}) =>
  service.post('/v1/payments', { ...TEA, ...changes }, { apiKey, key })
const bogusKey = () => makeApiKey(makeId('acct'), 'test')

/** As `send`, from an address of one's own. All of 127.0.0.0/8 is this machine. */
function askFrom(from: string, url: string, path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: { code?: string } }>(
    (resolve, reject) => {
      const asked = request(`${url}${path}`, { localAddress: from, headers, agent: false }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => {
          const body = JSON.parse(Buffer.concat(chunks).toString('utf8'))
          resolve({ status: answer.statusCode!, headers: answer.headers, body })
        })
      })
      asked.on('error', reject).end()
    },
  )
}
const bearer = (apiKey: string) => ({ authorization: `Bearer ${apiKey}` })

/** Counts the pool's queries of one kind: what they asked for, and how many there were at once. The background loop makes others. */
function watchQueries(service: TestService['service'], isOne: (text: string) => boolean) {
  const plain = service.pool.query.bind(service.pool)
  const seen = { values: [] as unknown[][], most: 0, stop: () => spy.mockRestore() }
  let now = 0
  const spy = vi.spyOn(service.pool, 'query').mockImplementation((async (
    ...given: Parameters<typeof plain>
  ) => {
    const [query, values] = given as unknown as [string | { text: string; values?: unknown[] }, unknown[]?]
    if (!isOne(typeof query === 'string' ? query : query.text)) return await plain(...given)
    seen.values.push(values ?? (query as { values?: unknown[] }).values ?? [])
    seen.most = Math.max(seen.most, ++now)
    try {
      return await plain(...given)
    } finally {
      now -= 1
    }
  }) as unknown as typeof plain)
  return seen
}

/** Locks rows, or a whole table, as a transaction that hangs does. */
async function hold(statement: string): Promise<() => Promise<void>> {
  const holder = await database.direct({ max: 1 }).connect()
  await holder.query('BEGIN')
  await holder.query(statement)
  let held = true
  const letGo = async () => {
    if (!held) return
    held = false
    await holder.query('ROLLBACK')
    holder.release()
  }
  cleanUpLater(letGo)
  return letGo
}

describe('a card', () => {
  it('is not charged once more while 400 made-up keys and 200 /readyz connections fill the service', async () => {
    const service = await open({
      VELOCITY_CARD: '3/600',
      DATABASE_POOL_SIZE: '3',
      LIMITS_WAIT_MS: '250',
      VELOCITY_WAIT_MS: '250',
    })
    const [caller, before] = [await service.addCaller(), await charges()]
    const flood = [
      ...Array.from({ length: 400 }, () => service.ask('/v1/balances', { apiKey: bogusKey() })),
      ...Array.from({ length: 200 }, () => service.ask('/readyz', { apiKey: null })),
    ]
    const answers = await Promise.all(Array.from({ length: 12 }, () => pay(service, caller)))
    await Promise.all(flood)
    const paid = answers.filter(({ status }) => status === 201).length
    const codes = new Set(answers.filter(({ status }) => status !== 201).map(({ body }) => body.code))
    expect([...codes].filter((code) => !REFUSALS.includes(code))).toEqual([])
    expect(paid).toBeLessThanOrEqual(3)
    expect(await charges()).toBe(before + paid)
  })

  it('is not charged when it cannot be counted, and nobody else is refused for that', async () => {
    const service = await open({ VELOCITY_CARD: '3/600', LIMITS_WAIT_MS: '500' })
    const [caller, other, before] = [await service.addCaller(), await service.addCaller(), await charges()]
    expect((await pay(service, caller)).status).toBe(201)
    const letGo = await hold('SELECT FROM onlyonce.velocity_limits FOR UPDATE')
    const key = newKey()
    const refused = await pay(service, caller, key)
    expect([refused.status, refused.body.code], refused.text).toEqual([503, 'limits_unavailable'])
    expect(refused.body).toMatchObject({ retryable: true, request_id: refused.headers.get('request-id') })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    const { state } = await service.service.once.explain({
      account: caller.account,
      operation: 'payments.create',
      key,
    })
    expect([state, await charges()]).toEqual(['none', before + 1])
    // Their rows are not locked, and nobody's trouble has paused them.
    expect((await pay(service, other)).status).toBe(201)
    await letGo()
    await waitUntil('the same key is charged', async () => (await pay(service, caller, key)).status === 201)
    expect(await charges()).toBe(before + 3)
  })
})
const REFUSALS = ['velocity_limited', 'limits_unavailable', 'overloaded', 'unavailable']

it('the rate of an account passes uncounted where it cannot be counted, and only its own', async () => {
  const service = await open({ RATE_LIMIT_TEST: '1000', LIMITS_WAIT_MS: '500' })
  const other = await service.addCaller()
  expect((await service.ask('/v1/balances')).headers.has('ratelimit')).toBe(true)
  const letGo = await hold('SELECT FROM onlyonce.rate_limits FOR UPDATE')
  const uncounted = await service.ask('/v1/balances')
  expect([uncounted.status, uncounted.headers.has('ratelimit')]).toEqual([200, false])
  const counted = await service.ask('/v1/balances', { apiKey: other.apiKey })
  expect([counted.status, counted.headers.has('ratelimit')]).toEqual([200, true])
  await letGo()
})

const calm = await open({})

describe('/readyz', () => {
  it('asks the database once for all who ask at once', async () => {
    const { service, ask } = calm
    const query = vi.spyOn(service.pool, 'query')
    const asked = () =>
      query.mock.calls.filter(([given]) => `${(given as { text?: string }).text}` === CAN_WRITE)
    const answers = await Promise.all(Array.from({ length: 200 }, () => ask('/readyz', { apiKey: null })))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expect(asked().length).toBeGreaterThan(0)
    // On a slow machine 200 answers may take longer than one is told again.
    expect(asked().length).toBeLessThan(20)
    query.mockRestore()
  })

  it('says no while all connections are taken, and waits for one of them itself at most', async () => {
    const { service, ask } = await open({ DATABASE_POOL_SIZE: '3' })
    const clients = await Promise.all(Array.from({ length: 3 }, () => service.pool.connect()))
    const looks = watchQueries(service, (text) => text === CAN_WRITE)
    try {
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask('/readyz', { apiKey: null })))
      expect(answers.filter(({ status }) => status !== 503)).toEqual([])
      expect(looks.most).toBe(1)
    } finally {
      for (const one of clients) one.release()
    }
    await waitUntil('it is ready', async () => (await ask('/readyz', { apiKey: null })).status === 200)
  })
})

describe('made-up API keys', () => {
  it('are looked up by one query at a time, however many come', async () => {
    const { service, ask } = calm
    const lookups = watchQueries(service, (text) => text.includes('api_keys'))
    const asks = Array.from({ length: 400 }, () => ask('/v1/balances', { apiKey: bogusKey() }))
    const statuses = (await Promise.all(asks)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([401]))
    const keys = lookups.values.flatMap(([asked]) => asked as unknown[])
    expect([lookups.most, keys.length]).toEqual([1, 400])
    lookups.stop()
  })

  it('cost their address its tries before the database is asked; a good key, and other addresses, go on', async () => {
    const { service, url, ask, apiKey } = await open({ STRANGERS_PER_MINUTE: '10' })
    expect((await ask('/v1/balances')).status).toBe(200)
    const lookups = watchQueries(service, (text) => text.includes('api_keys'))
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => askFrom('127.0.0.1', url, '/v1/balances', bearer(bogusKey()))),
    )
    const keys = lookups.values.flatMap(([asked]) => asked as unknown[])
    const refused = answers.filter(({ status }) => status === 429)
    // A try comes back every six seconds.
    expect(refused.length).toBeGreaterThanOrEqual(25)
    expect(keys.length).toBe(40 - refused.length)
    expect(refused[0]).toMatchObject({
      body: { code: 'rate_limited', retryable: true },
      headers: { 'stripe-rate-limited-reason': 'address-rate' },
    })
    expect(Number(refused[0]!.headers['retry-after'])).toBeGreaterThan(0)
    expect((await askFrom('127.0.0.1', url, '/v1/balances', bearer(apiKey))).status).toBe(200)
    expect((await askFrom('127.0.0.2', url, '/v1/balances', bearer(bogusKey()))).status).toBe(401)
  })

  it('of a client behind a proxy are its own: the word of a proxy is taken, and of no other', async () => {
    const trusting = await open({ STRANGERS_PER_MINUTE: '2', TRUSTED_PROXIES: '127.0.0.9,10.0.0.0/8' })
    const from = async (address: string, client: string) =>
      (
        await askFrom(address, trusting.url, '/v1/balances', {
          ...bearer(bogusKey()),
          'x-forwarded-for': client,
        })
      ).status
    const ask = (address: string, client: string) => async () => (await from(address, client)) === 429
    await waitUntil('one client is refused', ask('127.0.0.9', '203.0.113.1'))
    expect(await from('127.0.0.9', '203.0.113.2')).toBe(401)
    await waitUntil('one that only says so is refused', ask('127.0.0.8', '203.0.113.3'))
    expect(await from('127.0.0.8', '203.0.113.4')).toBe(429)
  })
})

describe('paths that do not exist', () => {
  it('cost their address its tries', async () => {
    const { url } = await open({ STRANGERS_PER_MINUTE: '10' })
    const paths = ['/nothing', '/.env', '/v1/nothing', '/ops/nothing', '/ops/records']
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => askFrom('127.0.0.3', url, paths[i % paths.length]!)),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(25)
    expect(statuses.filter((status) => ![401, 404, 429].includes(status))).toEqual([])
  })

  it('count as requests of the account whose key is sent', async () => {
    const service = await open({ RATE_LIMIT_TEST: '1' })
    let refused: Answer | undefined
    await waitUntil('one is refused', async () => {
      const answers = await Promise.all([service.ask('/v1/nothing'), service.ask('/v1/nothing')])
      refused = answers.find(({ status }) => status === 429)
      return refused !== undefined
    })
    expect(refused!.body.code).toBe('rate_limited')
  })
})

describe('an address', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::6', '2001:db8:1:2'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
  ])('of IPv6 is its network, and of IPv4 itself: %s', (ip, network) => {
    expect(networkOf(ip)).toBe(network)
  })

  it('gets its tries back over a minute, and they are counted for a bounded number of addresses', () => {
    let now = 0
    const strangers = new Strangers(60, () => now)
    const take = (ip: string) => {
      try {
        strangers.take({ ip })
        return true
      } catch {
        return false
      }
    }
    expect(Array.from({ length: 61 }, () => take('a')).filter(Boolean)).toHaveLength(60)
    now = 2_000
    expect([take('a'), take('a'), take('a')]).toEqual([true, true, false])
    for (let i = 0; i < 10_000; i += 1) take(`other ${i}`)
    expect(take('a')).toBe(true)
  })
})
