import { describe, expect, it } from 'vitest'
import { DEMO_API_KEY, ensureDemoAccount, revokeApiKey } from '../accounts/index.ts'
import { makeId } from '../ids.ts'
import { openTestService, send, TEST_OPS_TOKEN } from './service.ts'

const shared = await openTestService()
const { ask, url, service } = shared
const ASK = '/v1/balances'
const ops = (path: string, body?: unknown) =>
  ask(path, { apiKey: TEST_OPS_TOKEN, ...(body !== undefined && { method: 'POST', body }) })

/** The same key with something else in one place. */
function changed(apiKey: string, from: RegExp, to: string): string {
  const other = apiKey.replace(from, to)
  expect(other).not.toBe(apiKey)
  return other
}

describe('an API key', () => {
  it('opens what is of its account', async () => {
    const answer = await ask(ASK)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ data: [] })
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  it.each([
    ['no header', {}],
    ['an empty one', { authorization: '' }],
    ['another scheme', { authorization: `Basic ${shared.apiKey}` }],
    ['no scheme', { authorization: shared.apiKey }],
    ['two keys', { authorization: `Bearer ${shared.apiKey}, Bearer ${shared.apiKey}` }],
    ['two spaces', { authorization: `Bearer  ${shared.apiKey}` }],
    ['nothing that looks like a key', { authorization: 'Bearer sk_test_abc' }],
    ['a very long one', { authorization: `Bearer ${'a'.repeat(5_000)}` }],
    ['the key of the demo, which is not asked for', { authorization: `Bearer ${DEMO_API_KEY}` }],
    ['the token of the operators', { authorization: `Bearer ${TEST_OPS_TOKEN}` }],
    ['another secret', { authorization: `Bearer ${changed(shared.apiKey, /.{8}$/, 'AAAAAAAA')}` }],
    ['another mode', { authorization: `Bearer ${changed(shared.apiKey, /^sk_test_/, 'sk_live_')}` }],
  ])('is refused as a stranger: %s', async (_, headers) => {
    const answer = await send(url, ASK, { apiKey: null, headers })
    expect(answer.status).toBe(401)
    expect(answer.body).toMatchObject({ code: 'unauthorized', retryable: false })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })

  it('of the demo opens nothing in a process that has no demo, also where the database has the account', async () => {
    await ensureDemoAccount(service.pool)
    const config = { demo: true }
    const development = await openTestService({ database: shared.database, config })
    expect((await send(development.url, ASK, { apiKey: DEMO_API_KEY })).status).toBe(200)
    expect((await ask(ASK, { apiKey: DEMO_API_KEY })).status).toBe(401)
  })

  it('of one account with the name of another is a stranger', async () => {
    const other = await shared.addCaller()
    const mixed = shared.apiKey.replace(shared.accountId, other.accountId)
    expect((await ask(ASK, { apiKey: mixed })).status).toBe(401)
  })

  it('is asked for before anything else: body, media type, route and method', async () => {
    const stranger = { apiKey: null }
    const answers = await Promise.all([
      ask('/v1/idempotency-keys', { ...stranger, method: 'POST', body: 'no JSON' }),
      ask('/v1/idempotency-keys', {
        ...stranger,
        method: 'POST',
        body: 'a',
        headers: { 'content-type': 'text/plain' },
      }),
      ask('/v1/nothing', stranger),
      ask('/v1/balances', { ...stranger, method: 'DELETE' }),
      ask('/v1/balances?nonsense=1', stranger),
    ])
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401])
  })

  it('that is revoked opens nothing from the next request on, in other processes too', async () => {
    const caller = await shared.addCaller()
    const elsewhere = await openTestService({ database: shared.database })
    const both = () => Promise.all([url, elsewhere.url].map((at) => send(at, ASK, { apiKey: caller.apiKey })))
    expect((await both()).map(({ status }) => status)).toEqual([200, 200])
    await revokeApiKey(service.pool, caller.accountId, 'test', caller.keyId)
    expect((await both()).map(({ status }) => status)).toEqual([401, 401])
  })

  it('of a mode without a processor begins nothing and claims nothing, and reads what is there', async () => {
    const { apiKey } = await shared.addCaller('live')
    const body = { amount: 1_200, currency: 'EUR', payment_method: 'pm_card_visa' }
    const given = { apiKey, key: 'no-processor-yet-1' }
    const payment = `/v1/payments/${makeId('pay')}`
    for (const path of ['/v1/payments', `${payment}/capture`, `${payment}/refunds`]) {
      const {
        status,
        body: problem,
        text,
      } = await shared.post(path, path === '/v1/payments' ? body : {}, given)
      expect([status, problem.code], text).toEqual([403, 'mode_unavailable'])
    }
    expect((await ask('/v1/payments', { apiKey })).status).toBe(200)
    const { rows } = await service.pool.query('SELECT 1 FROM onlyonce.records WHERE key = $1', [given.key])
    expect(rows).toEqual([])
  })

  it('is found for each of many requests at once, and for nobody else', async () => {
    const callers = await Promise.all([1, 2, 3].map(() => shared.addCaller()))
    const keys = callers.flatMap(({ apiKey }) => [apiKey, changed(apiKey, /.{4}$/, 'BBBB')])
    const many = Array.from({ length: 120 }, (_, i) => keys[i % keys.length]!)
    const answers = await Promise.all(many.map((apiKey) => ask(ASK, { apiKey })))
    expect(answers.map(({ status }) => status)).toEqual(many.map((_, i) => (i % 2 === 0 ? 200 : 401)))
  })

  it('is kept as a hash', async () => {
    const { rows } = await service.pool.query('SELECT row_to_json(k)::text AS row FROM payments.api_keys k')
    const secret = shared.apiKey.slice(-43)
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.some(({ row }) => row.includes(secret))).toBe(false)
  })
})

describe('the operators', () => {
  it.each(['/ops/records', '/ops/ledger', '/metrics', '/ops/nothing'])(
    'have a token of their own: %s',
    async (path) => {
      expect((await ask(path)).status).toBe(401)
      expect((await ask(path, { apiKey: null })).status).toBe(401)
      expect((await ask(path, { apiKey: `${TEST_OPS_TOKEN}x` })).status).toBe(401)
      expect((await ask(path, { apiKey: TEST_OPS_TOKEN })).status).not.toBe(401)
    },
  )

  it('cannot get in where there is no token', async () => {
    const closed = await openTestService({ config: { opsToken: null } })
    for (const apiKey of [TEST_OPS_TOKEN, 'null', '']) {
      expect((await closed.ask('/ops/records', { apiKey })).status).toBe(401)
    }
  })

  it('create an account and a key, which works, and revoke it, which is the end of it', async () => {
    const account = await ops('/ops/accounts', { name: 'Acme' })
    expect(account.status, account.text).toBe(201)
    const path = `/ops/accounts/${account.body.id}/api-keys`
    const { status, body: made } = await ops(path, { mode: 'live' })
    expect(status).toBe(201)
    expect(made.api_key).toMatch(new RegExp(`^sk_live_${account.body.id}_[0-9A-Za-z]{43}$`))
    expect((await ask(ASK, { apiKey: made.api_key })).status).toBe(200)

    const revoked = await ops(`${path}/live/${made.id}/revoke`, '')
    expect(revoked.status, revoked.text).toBe(200)
    expect((await ask(ASK, { apiKey: made.api_key })).status).toBe(401)
    const again = await ops(`${path}/live/${made.id}/revoke`, '')
    expect(again.body.revoked_at).toBe(revoked.body.revoked_at)

    const { body } = await ops(path)
    expect(body.data).toEqual([{ ...made, api_key: undefined, revoked_at: revoked.body.revoked_at }])
  })

  it('find no key of one account, or of one mode, under another', async () => {
    const other = await shared.addCaller()
    const paths = [
      `/ops/accounts/${other.accountId}/api-keys/test/${shared.keyId}/revoke`,
      `/ops/accounts/${shared.accountId}/api-keys/live/${shared.keyId}/revoke`,
      `/ops/accounts/${shared.accountId.replace(/.$/, 'f')}0/api-keys/test/${shared.keyId}/revoke`,
    ]
    const answers = await Promise.all(paths.map((path) => ops(path, '')))
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 400])
    expect((await ask(ASK)).status).toBe(200)
  })

  it('see whether the books are right', async () => {
    const { status, body, text } = await ops('/ops/ledger')
    expect([status, body.ok, body.problems], text).toEqual([200, true, []])
    const insert = `INSERT INTO payments.reconciliation_runs VALUES
      ('stripe:test', $1, now() - interval '1 day', now(), now(), 1, 2, 3, 4, 5)`
    const ids = [makeId('rec'), makeId('rec')].sort()
    for (const id of ids) await service.pool.query(insert, [id])
    const first = (await ops('/ops/reconciliations?limit=1')).body
    expect(first.data).toMatchObject([{ id: ids[1], books: 'stripe:test', matched: 1, aged_unknown: 5 }])
    const second = (await ops(`/ops/reconciliations?limit=1&cursor=${first.next_cursor}`)).body
    expect([second.data[0].id, second.has_more]).toEqual([ids[0], false])
  })

  it('see records that are not finished, and metrics', async () => {
    const { body } = await ops('/ops/records?limit=5&older_than=0')
    expect(body).toEqual({ data: [], has_more: false, next_cursor: null })
    expect((await ops('/metrics')).text).toContain('# HELP api_idempotency')
  })
})
