/** Card numbers in places that are kept, shown and told: none of them gets that far. */
import { describe, expect, it } from 'vitest'
import { openSandbox } from './sandbox.ts'
import { openTestService, send, TEST_OPS_TOKEN } from './service.ts'

const { gateway, client } = await openSandbox()
const { post, ask, service, account, url, apiKey } = await openTestService({ gateways: { test: client } })
const CARD = '4242424242424242'
const SPACED = '4242 4242 4242 4242'
const DASHED = '4242-4242-4242-4242'
const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
const HOOK = 'https://shop.example/hooks'

/** Each character as a URL may write it. */
const percent = (text: string) => text.replaceAll(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`)

let made = 0
const newKey = () => `hostile-cards-${++made}`

/** In no table, in no form, whoever looks. */
async function expectNowhere(): Promise<void> {
  const { rows: tables } = await service.pool.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ('onlyonce', 'payments')`,
  )
  for (const { name } of tables) {
    const { rows } = await service.pool.query(
      `SELECT 1 FROM ${name} t WHERE regexp_replace(row_to_json(t)::text, '[ ._/-]', '', 'g') LIKE '%' || $1 || '%'`,
      [CARD],
    )
    expect(rows, name).toEqual([])
  }
}

describe('a card number', () => {
  it.each<[string, string, object, string]>([
    ['a reference', '/v1/payments', { ...TEA, reference: `order ${SPACED}` }, 'reference'],
    ['a payer', '/v1/payments', { ...TEA, payer: DASHED }, 'payer'],
    ['a value of metadata', '/v1/payments', { ...TEA, metadata: { note: CARD } }, 'metadata.note'],
    ['a name of metadata', '/v1/payments', { ...TEA, metadata: { [DASHED]: 'a' } }, 'metadata.[card number]'],
    ['a name that no schema takes', '/v1/payments', { ...TEA, [SPACED]: 1 }, '[card number]'],
    [
      'digits of another width',
      '/v1/payments',
      { ...TEA, payer: '４２４２４２４２４２４２４２４２' },
      'payer',
    ],
    [
      'the reference of a transfer',
      '/v1/transfers',
      { destination: `acct_${'0'.repeat(32)}`, amount: 1, currency: 'EUR', reference: CARD },
      'reference',
    ],
    [
      'the metadata of a refund',
      `/v1/payments/pay_${'0'.repeat(32)}/refunds`,
      { metadata: { a: CARD } },
      'metadata.a',
    ],
    ['the URL of an endpoint', '/v1/webhook-endpoints', { url: `${HOOK}?pan=${CARD}` }, 'url'],
    [
      'a URL in percent-encoding',
      '/v1/webhook-endpoints',
      { url: `${HOOK}?pan=4242%204242%204242%204242` },
      'url',
    ],
    [
      'a URL whose encoding is broken behind it',
      '/v1/webhook-endpoints',
      { url: `${HOOK}?pan=${percent(CARD)}%ff` },
      'url',
    ],
    [
      'a URL inside of a URL',
      '/v1/webhook-endpoints',
      { url: `${HOOK}?next=${percent(percent(CARD))}` },
      'url',
    ],
    ['groups between commas', '/v1/payments', { ...TEA, reference: '4242, 4242, 4242, 4242' }, 'reference'],
    ['digits of another script', '/v1/payments', { ...TEA, payer: '४२४२४२४२४२४२४२४२' }, 'payer'],
    ['a URL with plus signs', '/v1/webhook-endpoints', { url: `${HOOK}?pan=4242+4242+4242+4242` }, 'url'],
    ['a description', '/v1/webhook-endpoints', { url: HOOK, description: `for ${DASHED}` }, 'description'],
    ['a type of events', '/v1/webhook-endpoints', { url: HOOK, types: [CARD] }, 'types.0'],
  ])('is refused before a key is claimed: %s', async (_, path, body, field) => {
    const key = newKey()
    const answer = await post(path, body, { key })
    expect([answer.status, answer.body.code, answer.body.field], answer.text).toEqual([
      400,
      'card_number',
      field,
    ])
    expect(answer.text).not.toMatch(/4242/)
    const { rows } = await service.pool.query(
      'SELECT 1 FROM onlyonce.records WHERE account = $1 AND key = $2',
      [account, key],
    )
    expect(rows).toEqual([])
  })

  it.each([CARD, DASHED, `order-${DASHED}`, `order_${DASHED.replaceAll('-', '_')}_1`, `"a ${SPACED} b"`])(
    'is refused as a key: %s',
    async (key) => {
      const answer = await post('/v1/payments', TEA, { key })
      expect([answer.status, answer.body.code], answer.text).toEqual([400, 'key_card_number'])
    },
  )

  it.each([
    ['in digits', CARD],
    ['in percent-encoding that is read twice', percent(percent(SPACED))],
    ['behind a long name', `${'a'.repeat(87)}-${CARD}`],
    ['with a NUL in it', `${CARD}%00`],
  ])('is not repeated as the name of a parameter: %s', async (_, name) => {
    const { status, body, text } = await ask(`/v1/payments?${name}=1`)
    expect([status, body.code]).toEqual([400, 'invalid_request'])
    expect(decodeURIComponent(text)).not.toMatch(/4242|%34%32/)
  })

  it('is not repeated as a member that holds what no text can', async () => {
    const { status, text } = await post('/v1/payments', { ...TEA, [CARD]: 'a\0b' })
    expect(status).toBe(400)
    expect(text).not.toMatch(/4242/)
  })

  it('is refused as the name of an account, and taken over into no request id', async () => {
    const named = await ask('/ops/accounts', {
      method: 'POST',
      apiKey: TEST_OPS_TOKEN,
      body: { name: SPACED },
    })
    expect([named.status, named.body.code]).toEqual([400, 'card_number'])
    const headers = { 'x-request-id': CARD }
    expect((await send(url, '/v1/balances', { apiKey, headers })).headers.get('request-id')).toMatch(/^req_/)
  })

  it('leaves no trace, and the same key goes through without it', async () => {
    const key = newKey()
    expect((await post('/v1/payments', { ...TEA, reference: CARD }, { key })).status).toBe(400)
    expect((await post('/v1/payments', { ...TEA, reference: 'order 42' }, { key })).status).toBe(201)
    await expectNowhere()
    expect(JSON.stringify(await gateway.journal())).not.toMatch(/4242424242424242/)
  })

  it('is not seen in what only looks like one: other numbers go through', async () => {
    const metadata = { order: '4242424242424241', at: '1700000000006', invoice: '4500012345-2026-11-15' }
    const paid = await post('/v1/payments', {
      ...TEA,
      reference: '01989e03-978e-7000-8000-424242424242',
      metadata,
    })
    expect(paid.status, paid.text).toBe(201)
  })
})
