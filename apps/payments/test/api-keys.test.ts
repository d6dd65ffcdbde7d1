/** Keys: how they are issued, what is asked of them, and what became of them. */
import { beforeAll, describe, expect, it } from 'vitest'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, type TestService, testConfig } from './service.ts'

const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
let sandbox: Sandbox
let shop: TestService

beforeAll(async () => {
  sandbox = await openSandbox()
  shop = await openTestService({ gateways: { test: sandbox.client } })
})

/** One more service on the same database, told something by its environment. */
const openWith = (env: Record<string, string>, gateways = { test: sandbox.client }) =>
  openTestService({ database: shop.database, gateways, config: testConfig(shop.database, env) })

const issue = (at: TestService, operation: string, more: object = {}) =>
  at.post('/v1/idempotency-keys', { operation, ...more }, { key: '' })

describe('a key of ours', () => {
  it('is issued without an Idempotency-Key, and nothing is kept of that', async () => {
    const [first, second] = [await issue(shop, 'payments.create'), await issue(shop, 'payments.create')]
    expect([first.status, second.status]).toEqual([201, 201])
    expect(first.body.key).not.toBe(second.body.key)
    const paid = await shop.post('/v1/payments', TEA, { key: first.body.key })
    expect(paid.status).toBe(201)
    const { rows } = await shop.service.pool.query(
      `SELECT count(*)::int AS kept FROM onlyonce.records WHERE account = $1 AND operation LIKE 'idempotency%'`,
      [shop.account],
    )
    expect(rows).toEqual([{ kept: 0 }])
  })

  it('is the only one that is taken where the service asks for that', async () => {
    const strict = await openWith({ KEYS_ISSUED: 'required' })
    const refused = await strict.post('/v1/payments', TEA, { key: 'a-key-of-my-own-making' })
    expect([refused.status, refused.body.code]).toEqual([400, 'key_not_issued'])
    expect(refused.body.request_id).toBe(refused.headers.get('request-id'))
    const { key } = (await issue(strict, 'payments.create')).body
    expect((await strict.post('/v1/payments', TEA, { key })).status).toBe(201)
    const hook = { url: 'https://hooks.example.com/a' }
    expect((await strict.post('/v1/webhook-endpoints', hook, { key })).body.code).toBe('key_forged')
    const ofHooks = (await issue(strict, 'webhook_endpoints.create')).body.key
    expect((await strict.post('/v1/webhook-endpoints', hook, { key: ofHooks })).status).toBe(201)
  })

  it('lives no longer than what it names is kept', async () => {
    const { service, ...brief } = await openWith({ RETENTION_HOURS: '2' })
    const hours = (count: number) => ({ expires_in: count * 3_600 })
    const at = { ...brief, service } as TestService
    expect((await issue(at, 'payments.create', hours(1))).status).toBe(201)
    expect((await issue(at, 'payments.create', hours(2))).body).toMatchObject({
      status: 400,
      field: 'expires_in',
    })
  })
})

describe('how long a key replays', () => {
  it('is a setting, and no shorter than the processor remembers', async () => {
    const kept = async (env: Record<string, string>) => {
      const at = await openWith(env)
      const key = `kept-${JSON.stringify(env).length}-hours`
      await at.post('/v1/payments', TEA, { key })
      const { rows } = await shop.service.pool.query(
        `SELECT round(extract(epoch FROM expires_at - changed_at) / 3600)::int AS hours FROM onlyonce.records
         WHERE account = $1 AND key = $2`,
        [at.account, key],
      )
      return rows[0].hours
    }
    expect(await kept({ RETENTION_HOURS: '72' })).toBe(72)
    expect(await kept({ RETENTION_HOURS: '1' })).toBe(sandbox.client.keyLifetimeMs / 3_600_000)
  })
})

describe('a deadline of the client', () => {
  it('is read from the header that the service names, and from no other', async () => {
    const at = await openWith({ DEADLINE_HEADER: 'X-Deadline' })
    const past = { 'x-deadline': '2020-01-01T00:00:00Z' }
    const late = await at.post('/v1/payments', TEA, { headers: past })
    expect([late.status, late.body.code]).toEqual([504, 'deadline_exceeded'])
    const wrong = await at.post('/v1/payments', TEA, { headers: { 'x-deadline': 'soon' } })
    expect([wrong.status, wrong.body.code]).toEqual([400, 'deadline_invalid'])
    const inTime = { 'x-deadline': `${Date.now() + 600_000}` }
    expect((await at.post('/v1/payments', TEA, { headers: inTime })).status).toBe(201)
    expect((await shop.post('/v1/payments', TEA, { headers: past })).status).toBe(201)
  })
})

describe('a deadline for calls', () => {
  it('is kept with the request: after it nothing is sent to the processor any more', async () => {
    const lost = async () => {
      throw new Error('The answer was lost.')
    }
    const deaf = { ...sandbox.client, authorize: lost, findAuthorization: lost }
    const at = await openWith({ CALLS_DEADLINE_SECONDS: '7200' }, { test: deaf })
    const key = 'a-payment-in-doubt'
    expect((await at.post('/v1/payments', TEA, { key })).body.code).toBe('outcome_pending')
    const { rows } = await shop.service.pool.query(
      `SELECT round(extract(epoch FROM deadline_at - created_at) / 3600)::int AS hours FROM onlyonce.records
       WHERE account = $1 AND key = $2`,
      [at.account, key],
    )
    expect(rows).toEqual([{ hours: 2 }])
  })
})

describe('what became of a key', () => {
  const ask = async (at: TestService, key: string, query = '') =>
    await at.ask(`/v1/idempotency-keys/${encodeURIComponent(key)}${query}`)

  it('that has no record is not known, and never said to be not executed', async () => {
    const { status, body } = await ask(shop, 'a-key-that-was-never-used')
    expect([status, body.known, body.uses]).toEqual([200, false, []])
    expect(body.detail).toContain('does not tell whether anything was executed')
  })

  it('is told by operation, with the status of the answer and where the result is', async () => {
    const key = 'one/key for "two" operations?'
    const quoted = `"${key.replaceAll('"', '\\"')}"`
    const paid = await shop.post('/v1/payments', TEA, { key: quoted })
    expect(paid.status).toBe(201)
    expect((await ask(shop, quoted)).body).toMatchObject({ key, known: true })
    await shop.post(
      '/v1/payments',
      { ...TEA, payment_method: 'pm_card_chargeDeclined' },
      { key: 'declined-key' },
    )
    const { body } = await ask(shop, key)
    expect(body).toMatchObject({
      key,
      known: true,
      uses: [
        {
          operation: 'payments.create',
          state: 'completed',
          status: 201,
          location: `/v1/payments/${paid.body.id}`,
        },
      ],
    })
    expect(JSON.stringify(body)).not.toContain(String(process.pid))
    expect((await ask(shop, key, '?operation=transfers.create')).body.known).toBe(false)
    expect((await ask(shop, 'declined-key')).body.uses).toMatchObject([{ state: 'completed', status: 402 }])
    expect((await ask(shop, key, '?operation=other')).body).toMatchObject({ status: 400, field: 'operation' })
    expect((await ask(shop, 'x')).body.code).toBe('key_too_short')
  })

  it('is told to its own account alone', async () => {
    const key = 'a-key-of-one-account'
    await shop.post('/v1/payments', TEA, { key })
    const { apiKey } = await shop.addCaller()
    const known = async (given = {}) => (await shop.ask(`/v1/idempotency-keys/${key}`, given)).body.known
    expect([await known(), await known({ apiKey })]).toEqual([true, false])
  })

  it.each([
    ['not executed', 'retryable', 'has not ended'],
    ['lost', 'unknown', 'being found out'],
    ['refused', 'parked', 'operator'],
  ])('is told where it has no outcome: %s', async (how, state, said) => {
    const { callRefused, notExecuted } = await import('onlyonce')
    const fail = async () => {
      if (how === 'not executed') throw notExecuted()
      throw how === 'lost' ? new Error('lost') : callRefused(new Error('no'))
    }
    const gateway = { ...sandbox.client, authorize: fail, findAuthorization: fail }
    const at = await openWith({}, { test: gateway })
    const key = `a-key-that-is-${state}`
    await at.post('/v1/payments', TEA, { key })
    const { body } = await ask(at, key)
    expect(body.uses).toMatchObject([{ state, status: null, location: null }])
    expect(body.uses[0].detail).toContain(said)
  })
})
