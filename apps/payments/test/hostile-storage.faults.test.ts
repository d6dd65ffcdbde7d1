/** An account that wants to fill our disk, or the connections that others need. */
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { LIMITS } from '../limits.ts'
import { Provisional } from '../provisional.ts'
import { openSandbox } from './sandbox.ts'
import { openTestService, type TestService, testConfig } from './service.ts'

const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
const database = await freshDatabase()
const { gateway, client } = await openSandbox({}, { timeoutMs: 10_000 })

async function open(env: Readonly<Record<string, string>>): Promise<TestService> {
  const { limits } = testConfig(database, env)
  return await openTestService({ database, config: { limits }, gateways: { test: client } })
}

const calm = await open({})
let made = 0
const newKey = () => `storage-${++made}-attempt`
const stateOf = async ({ service, account }: TestService, key: string) =>
  (await service.once.explain({ account, operation: 'payments.create', key })).state

describe('metadata', () => {
  const notes = (text: string) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`note_${i}`, text]))

  it('is bounded in bytes, before a key is claimed', async () => {
    const key = newKey()
    const large = await calm.post('/v1/payments', { ...TEA, metadata: notes('🫖'.repeat(200)) }, { key })
    expect([large.status, large.body.code, large.body.field], large.text).toEqual([
      400,
      'invalid_request',
      'metadata',
    ])
    expect(large.body.detail).toContain('12288 bytes')
    expect(await stateOf(calm, key)).toBe('none')
    const full = await calm.post('/v1/payments', { ...TEA, metadata: notes('a'.repeat(500)) }, { key })
    expect(full.status, full.text).toBe(201)
  })

  it('is kept with its payment, and with no event and no message', async () => {
    const metadata = { note: 'a note that is the account its own' }
    const paid = await calm.post('/v1/payments', { ...TEA, metadata })
    expect(paid.body.metadata).toEqual(metadata)
    await calm.post(`/v1/payments/${paid.body.id}/refunds`, { amount: 1, metadata })
    const { rows } = await calm.service.pool.query<{ payload: string }>(
      'SELECT payload::text AS payload FROM onlyonce.events WHERE account = $1 AND payload::text LIKE $2',
      [calm.account, `%${paid.body.id}%`],
    )
    expect(rows.length).toBeGreaterThanOrEqual(2)
    for (const { payload } of rows) expect(payload).not.toMatch(/metadata|a note that/)
  })
})

describe('the quota of a day', () => {
  it('is that of the account: new writes beyond it are refused, replays are served, and no key is claimed', async () => {
    const small = await open({ QUOTA_TEST: '2' })
    const key = newKey()
    const first = await small.post('/v1/payments', TEA, { key })
    expect((await small.post('/v1/webhook-endpoints', { url: 'https://shop.example/quota' })).status).toBe(
      201,
    )
    const refusedKey = newKey()
    const refused = await small.post('/v1/payments', TEA, { key: refusedKey })
    expect([refused.status, refused.body.code], refused.text).toEqual([429, 'quota_exceeded'])
    expect(refused.headers.get('stripe-rate-limited-reason')).toBe('daily-quota')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3_600)
    expect(await stateOf(small, refusedKey)).toBe('none')
    expect((await small.post('/v1/payments', TEA, { key })).text).toBe(first.text)
    expect((await small.ask('/v1/payments')).status).toBe(200)
    const other = await small.addCaller()
    expect((await small.post('/v1/payments', TEA, { apiKey: other.apiKey })).status).toBe(201)
  })
})

describe('the quota of a day', () => {
  it('counts what begins a write, and nothing that is refused', async () => {
    const small = await open({ QUOTA_TEST: '3', VELOCITY_CARD: '1/3600' })
    const order = { ...TEA, unique_reference: 'once' }
    const paid = await small.post('/v1/payments', order)
    expect(paid.status).toBe(201)
    for (let round = 0; round < 2; round += 1) {
      const refused = [
        await small.post('/v1/payments/pay_00000000000070008000000000000000/capture', {}),
        await small.post(`/v1/payments/${paid.body.id}/refunds`, { amount: 0.5 }),
        await small.post('/v1/payments', TEA),
        await small.post('/v1/payments', { ...order, payment_method: 'pm_card_mastercard' }),
        await small.post('/v1/webhook-endpoints', { url: 'https://127.0.0.1/' }),
      ]
      for (const { body } of refused) expect(body).toMatchObject({ executed: 'not_by_this_request' })
      expect(refused.map(({ body }) => body.code)).toEqual([
        'not_found',
        'invalid_request',
        'velocity_limited',
        'duplicate_intent',
        'webhook_url_refused',
      ])
    }
    for (const amount of [1, 2]) {
      expect((await small.post(`/v1/payments/${paid.body.id}/refunds`, { amount })).status).toBe(201)
    }
    const { body } = await small.post(`/v1/payments/${paid.body.id}/refunds`, { amount: 3 })
    expect(body).toMatchObject({ code: 'quota_exceeded', executed: 'not_by_this_request' })
  })
})

describe('points that a request under way may give back', () => {
  const heldCount = async () => (await gateway.state()).held.length

  it.each([
    { env: { QUOTA_TEST: '1' }, code: 'quota_exceeded' },
    { env: { VELOCITY_CARD: '1/3600' }, code: 'velocity_limited' },
    { env: { VELOCITY_ACCOUNT: '1/3600' }, code: 'velocity_limited' },
  ])('have others come back soon, and not when the window ends: $env', async ({ env, code }) => {
    const small = await open(env as Record<string, string>)
    await gateway.fault({ fault: 'hold_before', on: 'create', times: 1 })
    const held = small.post('/v1/payments', TEA)
    await waitUntil('it is held', async () => (await heldCount()) === 1)
    const soon = await small.post('/v1/payments', TEA)
    expect([soon.body.code, soon.headers.get('retry-after')]).toEqual([code, '1'])
    // What the window is stays told.
    expect(Number(/t=(\d+)/.exec(soon.headers.get('ratelimit')!)![1])).toBeGreaterThan(3_000)
    await gateway.release()
    expect((await held).status).toBe(201)
    const { body, headers } = await small.post('/v1/payments', TEA)
    expect(body.code).toBe(code)
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(3_000)
  })

  it('count as taken when their request takes too long, and are forgotten beyond a bound', () => {
    let nowMs = 0
    const points = new Provisional(() => nowMs)
    const write = { account: 'acct_1:test', key: 'a-key-of-one' }
    points.hold(write, 'day')
    points.hold(write, 'card')
    expect([points.mayComeBack('day'), points.mayComeBack('other')]).toEqual([true, false])
    nowMs += LIMITS.provisionalMaxMs
    expect(points.mayComeBack('day')).toBe(false)
    points.hold(write, 'day')
    points.over(write)
    expect([points.mayComeBack('day'), points.mayComeBack('card')]).toEqual([false, false])
    points.hold(write, 'card')
    for (let i = 0; i < LIMITS.triesMax; i += 1) points.hold({ ...write, key: `${i}` }, 'day')
    expect([points.mayComeBack('card'), points.mayComeBack('day')]).toEqual([false, true])
  })
})

describe('a payment that the processor has not taken', () => {
  it('is one write, however often its client sends it, and tries no card', async () => {
    const small = await open({ QUOTA_TEST: '3', VELOCITY_CARD: '2/3600' })
    const order = { ...TEA, reference: 'a busy processor' }
    await gateway.fault({ fault: 'busy', on: 'create', rate: 1 })
    const [key, other] = [newKey(), newKey()]
    // As many as the card and the day allow, and more.
    for (let sent = 0; sent < 4; sent += 1) {
      const { body } = await small.post('/v1/payments', order, { key })
      expect([body.status, body.code]).toEqual([503, 'unfinished'])
    }
    await small.post('/v1/payments', order, { key: other })
    await gateway.behave()
    expect((await small.post('/v1/payments', order, { key })).status).toBe(201)
    expect((await small.post('/v1/payments', order, { key: other })).status).toBe(201)
    // Fresh keys count, and so does each time that the card was tried.
    expect((await small.post('/v1/payments', order)).body.code).toBe('velocity_limited')
    const mastercard = { ...order, payment_method: 'pm_card_mastercard' }
    expect((await small.post('/v1/payments', mastercard)).status).toBe(201)
    expect((await small.post('/v1/payments', mastercard)).body.code).toBe('quota_exceeded')
  })
})

describe('what only reads', () => {
  const { reads } = calm.service

  it('is ended by the server when it takes too long, and writes nothing', async () => {
    await expect(reads.of('a').query('SELECT pg_sleep(60)')).rejects.toMatchObject({ code: '57014' })
    const { rows } = await calm.service.pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE '%pg_sleep(60)%'
         AND pid <> pg_backend_pid()`,
    )
    expect(rows).toEqual([])
    await expect(reads.of('a').query('CREATE TABLE payments.mine ()')).rejects.toMatchObject({
      code: '25006',
    })
  })

  it('takes half of its connections for one account, however much that asks for; others read on', async () => {
    const holder = await database.direct({ max: 1 }).connect()
    await holder.query('SELECT pg_advisory_lock(4711)')
    const blocked = Array.from({ length: 300 }, () =>
      reads.of('greedy').query('SELECT pg_advisory_lock(4711)'),
    )
    const ends = Promise.allSettled(blocked)
    await waitUntil('its reads wait in the database', async () => (await waitingReads()) > 0)
    expect((await reads.of('modest').query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    expect(await waitingReads()).toBeLessThanOrEqual(3)
    await holder.query('SELECT pg_advisory_unlock(4711)')
    holder.release()
    const refused = (await ends).filter((end) => end.status === 'rejected').map(({ reason }) => reason.code)
    // So many wait at most; the others are told at once.
    expect(refused.filter((code) => code === 'rate_limited')).toHaveLength(300 - 3 - 200)
    expect((await reads.of('greedy').query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })

  it.each([
    ['events', 'onlyonce.webhook_messages', '/v1/events'],
    ['webhook endpoints', 'onlyonce.webhook_endpoints', '/v1/webhook-endpoints'],
  ])('takes no more of the connections of the library: %s', async (_, table, path) => {
    const { apiKey } = await calm.addCaller()
    const observer = database.direct({ max: 1 })
    const waiting = async () => {
      const { rows } = await observer.query(
        'SELECT count(*)::int FROM pg_locks WHERE relation = $1::regclass AND NOT granted',
        [table],
      )
      return rows[0].count
    }
    const holder = await database.direct({ max: 1 }).connect()
    await holder.query(`BEGIN; LOCK TABLE ${table}`)
    const asked = Array.from({ length: 30 }, () => calm.ask(path, { apiKey }))
    await waitUntil('its reads wait in the database', async () => (await waiting()) >= 3)
    // Behind all of them, and served at once: there are connections left.
    expect((await calm.ask('/v1/balances')).status).toBe(200)
    expect(await waiting()).toBe(3)
    await holder.query('ROLLBACK')
    holder.release()
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]))
  })

  async function waitingReads(): Promise<number> {
    const { rows } = await calm.service.pool.query<{ count: number }>(
      `SELECT count(*)::int FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event = 'advisory' AND query LIKE '%advisory_lock(4711)%'`,
    )
    return rows[0]!.count
  }
})

it('an account has so many requests under way at once, and others have theirs', async () => {
  const busy = await open({ REQUESTS_PER_ACCOUNT: '2' })
  await gateway.fault({ fault: 'hold_before', on: 'create', times: 2 })
  const held = [busy.post('/v1/payments', TEA), busy.post('/v1/payments', TEA)]
  await waitUntil('two are held', async () => (await gateway.state()).held.length === 2)
  const refused = await busy.ask('/v1/balances')
  expect([refused.status, refused.body.code], refused.text).toEqual([429, 'rate_limited'])
  expect(refused.headers.get('stripe-rate-limited-reason')).toBe('account-concurrency')
  expect(refused.headers.get('retry-after')).toBe('1')
  const other = await busy.addCaller()
  expect((await busy.ask('/v1/balances', { apiKey: other.apiKey })).status).toBe(200)
  await gateway.release()
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([201, 201])
  await waitUntil('there is room again', async () => (await busy.ask('/v1/balances')).status === 200)
})
