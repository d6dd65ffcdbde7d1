import { expect } from 'vitest'
import type { GatewayProcess } from '../../../gateway/index.ts'
import { sendRaw } from '../raw.ts'
import { openSandbox } from '../sandbox.ts'
import { type Ask, openTestService, TEST_OPS_TOKEN, type TestCaller, type TestService } from '../service.ts'

/** One request that is wrong, and what it is told. A text as `raw` is sent as it is; `KEY` in it is the key. */
export interface Given extends Ask {
  readonly path?: string
  readonly raw?: string | Buffer
  /** The client closes its side behind the bytes. */
  readonly hangsUp?: boolean
}

/** What is wrong, the request, the status, the code, and the member or parameter that is named. */
export type Row = readonly [
  what: string,
  given: Given,
  status: number,
  code: string,
  field?: string | undefined,
]

/** A service and its processor, and one of everything that a request can be about. */
export interface Site {
  readonly shop: TestService
  readonly gateway: GatewayProcess
  /** Another account, whose things are not there for the shop. */
  readonly other: TestCaller
  readonly captured: string
  readonly held: string
  /** In dinars, which have three decimals and are charged in steps of ten. */
  readonly dinars: string
  readonly dinarsHeld: string
  readonly othersPayment: string
  readonly endpoint: string
  readonly othersEndpoint: string
}

export const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
export const NOWHERE = `pay_${'0'.repeat(32)}`
export const GATEWAY_SECRET = `whsec_${'a'.repeat(32)}`
const MUCH = { ...TEA, amount: 99_000_000 }

export async function openSite(): Promise<Site> {
  const { gateway, client } = await openSandbox()
  const shop = await openTestService({
    gateways: { test: client },
    config: { webhookSecrets: [GATEWAY_SECRET] },
  })
  const other = await shop.addCaller()
  const make = async (path: string, body: object, apiKey = shop.apiKey): Promise<string> => {
    const answer = await shop.post(path, body, { apiKey })
    expect(answer.status, answer.text).toBe(201)
    return answer.body.id
  }
  const hook = { url: 'https://shop.example/hooks' }
  const [captured, held, dinars, dinarsHeld, othersPayment, endpoint, othersEndpoint] = await Promise.all([
    make('/v1/payments', MUCH),
    make('/v1/payments', { ...MUCH, capture_method: 'manual' }),
    make('/v1/payments', { ...MUCH, currency: 'KWD' }),
    make('/v1/payments', { ...MUCH, currency: 'KWD', capture_method: 'manual' }),
    make('/v1/payments', TEA, other.apiKey),
    make('/v1/webhook-endpoints', hook),
    make('/v1/webhook-endpoints', hook, other.apiKey),
  ])
  return {
    shop,
    gateway,
    other,
    captured,
    held,
    dinars,
    dinarsHeld,
    othersPayment,
    endpoint,
    othersEndpoint,
  }
}

/** As a client of HTTP would write it, but for what is changed: null leaves a header out, a list repeats it. */
export function wire(
  { shop }: Pick<Site, 'shop'>,
  changes: {
    readonly start?: string
    readonly headers?: Readonly<Record<string, string | readonly string[] | null>>
    readonly body?: string
  } = {},
): string {
  const { start = 'POST /v1/payments HTTP/1.1', body = JSON.stringify(TEA) } = changes
  const headers: Record<string, string | readonly string[] | null> = {
    Host: 'localhost',
    Authorization: `Bearer ${shop.apiKey}`,
    'Idempotency-Key': 'KEY',
    'Content-Type': 'application/json',
    'Content-Length': `${Buffer.byteLength(body)}`,
    Connection: 'close',
    ...changes.headers,
  }
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().map((one) => `${name}: ${one}`),
  )
  return `${[start, ...lines].join('\r\n')}\r\n\r\n${body}`
}

/** For rows about /ops. */
export const asOperator = (given: Given): Given => ({ apiKey: TEST_OPS_TOKEN, ...given })

let sent = 0

/** Sends what is wrong, looks at what comes back, and shows that its key is still free. */
export async function expectRefused(site: Site, [, given, status, code, field]: Row): Promise<void> {
  sent += 1
  const key = given.key ?? `malformed-${sent}-attempt`
  const answer = await ask(site, given, key)
  expect({ status: answer.status, code: answer.body.code }, answer.text).toEqual({ status, code })
  expect(answer.header('content-type')).toBe('application/problem+json')
  expect(answer.header('cache-control')).toBe('no-store')
  expect(answer.body).toMatchObject({
    type: `https://onlyonce.dev/problems/${code}`,
    title: expect.stringMatching(/\S/),
    status,
    retryable: false,
    request_id: answer.header('request-id'),
  })
  expect(answer.body.request_id).toMatch(/^req_[0-9a-f]{32}$/)
  expect(answer.body.field).toBe(field)
  if (field !== undefined) expect(answer.body.detail).toContain(field)
  expect(answer.text).not.toMatch(INTERNALS)
  if (given.key === undefined) await expectFree(site, given, key)
}

const INTERNALS =
  /\bat .*:\d+:\d+|\.[jt]s\b|node_modules|FST_|HPE_|fastify|ajv|typebox|\bpg\b|postgres|SELECT|INSERT|relation "|payments\.(?:payments|accounts|api_keys|attempts|captures|refunds|transfers|ledger)|onlyonce\.(?!dev)/i

async function ask({ shop }: Site, given: Given, key: string) {
  const { path = '/v1/payments', raw, hangsUp = false, ...rest } = given
  if (raw === undefined) {
    const answer = await shop.ask(path, { method: 'POST', ...rest, key })
    return { ...answer, header: (name: string) => answer.headers.get(name) }
  }
  const bytes = typeof raw === 'string' ? raw.replaceAll('KEY', key) : raw
  const { head, text, ...answer } = await sendRaw(shop.url, bytes, { hangsUp })
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1] ?? null
  return { ...answer, text, header }
}

/** How many requests were served after all, by their operation. */
export const served: Record<string, number> = {}

/** Where the request was to write: the same key goes through with what is right there. */
async function expectFree(site: Site, given: Given, key: string): Promise<void> {
  const { path = '/v1/payments', method = 'POST', apiKey } = given
  const [operation, body] = rightAt(site)[`${method} ${path}`] ?? []
  if (operation === undefined || apiKey !== undefined) return
  const { status, headers, text } = await site.shop.ask(path, { method, body, key })
  expect([200, 201], text).toContain(status)
  expect(headers.get('idempotent-replayed')).toBeNull()
  served[operation] = (served[operation] ?? 0) + 1
}

/** What is right, as often as one likes. */
function rightAt({ held, captured, other, endpoint }: Site): Readonly<Record<string, [string, object]>> {
  const hook = `/v1/webhook-endpoints/${endpoint}`
  const longAgo = '2020-01-01T00:00:00Z'
  return {
    'POST /v1/payments': ['payments.create', TEA],
    [`POST /v1/payments/${held}/capture`]: ['payments.capture', { amount: 1, final: false }],
    [`POST /v1/payments/${captured}/refunds`]: ['refunds.create', { amount: 1 }],
    'POST /v1/transfers': ['transfers.create', { destination: other.accountId, amount: 1, currency: 'EUR' }],
    [`PATCH ${hook}`]: ['webhook_endpoints.update', { description: 'Of the shop.' }],
    [`POST ${hook}/rotate-secret`]: ['webhook_endpoints.rotate_secret', {}],
    [`POST ${hook}/replay`]: ['webhook_endpoints.replay', { from: longAgo, to: longAgo }],
  }
}
