import { describe, expect, it } from 'vitest'
import { API_LIMITS } from '../api/limits.ts'
import { sendRaw } from './raw.ts'
import { type Answer, type Ask, openTestService, TEST_OPS_TOKEN } from './service.ts'

const shared = await openTestService()
const { ask, url } = shared
const PATH = '/v1/idempotency-keys'
const GOOD = { operation: 'payments.create' }

const post = (body: unknown, given: Ask = {}) => ask(PATH, { method: 'POST', body, ...given })
/** A write that needs a key. */
const hook = (body: unknown, given: Ask = {}) =>
  ask('/v1/webhook-endpoints', { method: 'POST', body, ...given })

/** A problem as every refusal is one, and nothing of what is behind it. */
function expectProblem({ status, headers, body, text }: Answer, expected: number, code: string): void {
  expect({ status, code: body.code }, text).toEqual({ status: expected, code })
  expect(headers.get('content-type')).toBe('application/problem+json')
  expect(body).toMatchObject({
    type: `https://onlyonce.dev/problems/${code}`,
    title: expect.stringMatching(/\S/),
    status: expected,
    retryable: expect.any(Boolean),
  })
  expect(headers.get('request-id')).toMatch(/^req_[0-9a-f]{32}$/)
  expect(text).not.toMatch(/FST_|node_modules|\bat .*:\d+:\d+|SELECT|payments\.api_keys|ajv/)
}

const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

describe('a body', () => {
  it.each<[string, string | Buffer, string, string?]>([
    ['a member that is not known', '{"operation":"payments.create","extra":1}', 'invalid_request', 'extra'],
    ['a prototype', '{"operation":"payments.create","__proto__":{"a":1}}', 'invalid_request', '__proto__'],
    ['a member that is missing', '{}', 'invalid_request', 'operation'],
    ['a value that is not one of them', '{"operation":"payments.destroy"}', 'invalid_request', 'operation'],
    [
      'a number as a text',
      '{"operation":"payments.create","expires_in":"60"}',
      'invalid_request',
      'expires_in',
    ],
    ['a fraction', '{"operation":"payments.create","expires_in":1.5}', 'invalid_request', 'expires_in'],
    ['zero', '{"operation":"payments.create","expires_in":0}', 'invalid_request', 'expires_in'],
    [
      'a fraction that would be rounded away',
      '{"operation":"payments.create","expires_in":1.00000000000000000001}',
      'invalid_request',
      'expires_in',
    ],
    [
      'a number past 2^53',
      '{"operation":"payments.create","expires_in":9007199254740993}',
      'invalid_request',
      'expires_in',
    ],
    [
      'a number past 2^53 that is exact',
      '{"operation":"payments.create","expires_in":9007199254740992}',
      'invalid_request',
      'expires_in',
    ],
    [
      'a number past all',
      '{"operation":"payments.create","expires_in":1e400}',
      'invalid_request',
      'expires_in',
    ],
    ['NUL in a text', '{"operation":"payments\\u0000create"}', 'invalid_request', 'operation'],
    ['NUL in a name', '{"operation":"payments.create","a\\u0000b":1}', 'invalid_request', 'ab'],
    ['a list', '[]', 'invalid_request'],
    ['null', 'null', 'invalid_request'],
    ['a text', '"payments.create"', 'invalid_request'],
    ['nothing', '', 'invalid_request'],
    [
      'a member twice',
      '{"operation":"payments.create","operation":"payments.create"}',
      'json_duplicate_member',
    ],
    ['no JSON', '{"operation":', 'json_malformed'],
    ['two values', '{}{}', 'json_malformed'],
    ['a comma too much', '{"operation":"payments.create",}', 'json_malformed'],
    ['NaN', '{"expires_in":NaN}', 'json_malformed'],
    ['a byte order mark', '\ufeff{}', 'json_malformed'],
    ['bad UTF-8', Buffer.from('{"operation":"\xff\xfe"}', 'latin1'), 'json_not_utf8'],
    ['half a surrogate pair', '{"operation":"\\ud800"}', 'json_lone_surrogate'],
    ['too many levels', deep(API_LIMITS.jsonDepthMax + 1), 'json_too_deep'],
    ['a great many levels', deep(10_000), 'json_too_deep'],
    ['too many members', `[${'1,'.repeat(API_LIMITS.jsonMembersMax)}1]`, 'json_too_many_members'],
  ])('is refused: %s', async (_, body, code, field) => {
    const answer = await post(body)
    expectProblem(answer, 400, code)
    expect(answer.body.field).toBe(field)
    expect(answer.body.request_id).toBe(answer.headers.get('request-id'))
    if (field !== undefined) expect(answer.body.detail).toContain(field)
  })

  it('of the greatest size and the greatest depth is read, and one byte more is not', async () => {
    const filled = (size: number) => {
      const frame = JSON.stringify({ ...GOOD, a: '' })
      return JSON.stringify({ ...GOOD, a: 'x'.repeat(size - frame.length) })
    }
    expectProblem(await post(filled(API_LIMITS.bodySizeMaxBytes)), 400, 'invalid_request')
    expectProblem(await post(filled(API_LIMITS.bodySizeMaxBytes + 1)), 413, 'body_too_large')
    expectProblem(await post(deep(API_LIMITS.jsonDepthMax)), 400, 'invalid_request')
  })

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=a',
    'application/xml',
    'application/json; charset=utf-16',
    'application/jsonx',
    'nonsense',
  ])('of another type is refused: %s', async (type) => {
    expectProblem(
      await post(JSON.stringify(GOOD), { headers: { 'content-type': type } }),
      415,
      'media_type_unsupported',
    )
  })

  it('that is encoded is refused', async () => {
    const headers = { 'content-encoding': 'gzip' }
    expectProblem(await post(JSON.stringify(GOOD), { headers }), 415, 'media_type_unsupported')
  })

  it('may say that it is in UTF-8', async () => {
    const headers = { 'content-type': 'Application/JSON; charset="UTF-8"' }
    expect((await post(JSON.stringify(GOOD), { headers })).status).toBe(201)
  })

  it('that is refused claims no key', async () => {
    const key = 'refused-then-accepted-1'
    expectProblem(await hook('{"url":1}', { key }), 400, 'invalid_request')
    const { status, headers } = await hook({ url: 'https://hooks.example.com/1' }, { key })
    expect([status, headers.get('idempotent-replayed')]).toEqual([201, null])
  })
})

describe('a path', () => {
  it.each([
    ['/nothing', 404, 'not_found'],
    ['/v1/nothing', 404, 'not_found'],
    ['/v1/balances/', 404, 'not_found'],
    ['/V1/balances', 404, 'not_found'],
    ['/v1/%zz', 400, 'invalid_request'],
    ['/%ff', 400, 'invalid_request'],
    ['/v1/balances?a=1', 400, 'invalid_request'],
    ['/v1/balances?a=%00', 400, 'invalid_request'],
    [`/v1/${'a'.repeat(2_000)}`, 404, 'not_found'],
  ] as const)('%s is a problem', async (path, status, code) => expectProblem(await ask(path), status, code))

  it.each([
    ['GET', PATH, 'POST'],
    ['DELETE', '/v1/balances', 'GET, HEAD'],
    ['POST', '/healthz', 'GET, HEAD'],
    ['OPTIONS', PATH, 'POST'],
  ])('with another method tells which there are: %s %s', async (method, path, allow) => {
    const answer = await ask(path, { method })
    expectProblem(answer, 405, 'method_not_allowed')
    expect(answer.headers.get('allow')).toBe(allow)
  })
})

describe('a query', () => {
  it.each([
    ['/v1/payments?created_from=2026-02-30T00:00:00Z', 'created_from'],
    ['/v1/payments?created_to=0000-01-01T00:00:00Z', 'created_to'],
    ['/v1/payments?created_from=2026-06-30T23:59:60Z', 'created_from'],
    ['/v1/payments?created_from=9999-12-31T23:59:59-23:59', 'created_from'],
    ['/v1/events?from=0000-01-01T00:00:00Z', 'from'],
    ['/v1/events?to=1969-12-31T23:59:59Z', 'to'],
  ])('with a time that cannot be is a problem: %s', async (path, field) => {
    const answer = await ask(path)
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.body.field).toBe(field)
  })

  it('for records has a cursor of theirs, or it is a problem', async () => {
    for (const cursor of ['abc', 'eyJ9', 'W10']) {
      const answer = await ask(`/ops/records?cursor=${cursor}`, { apiKey: TEST_OPS_TOKEN })
      expectProblem(answer, 400, 'invalid_request')
    }
  })
})

describe('what is no HTTP', () => {
  it.each([
    ['no request', 'hello\r\n\r\n', 400],
    ['a method that is none', 'NONSENSE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 400],
    ['NUL in a header', 'GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\nConnection: close\r\n\r\n', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 400],
    ['headers without an end', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(70_000)}\r\n\r\n`, 431],
  ])('is a problem too: %s', async (_, bytes, expected) => {
    const { status, head, body } = await sendRaw(url, bytes)
    expect(status).toBe(expected)
    expect(head).toMatch(/content-type: application\/problem\+json/i)
    expect(body).toMatchObject({ status: expected, request_id: expect.stringMatching(/^req_/) })
  })
})

describe('the id of a request', () => {
  it('is taken from the request where it is sane', async () => {
    const answer = await ask('/v1/nothing', { headers: { 'x-request-id': 'trace-0123.abc:1' } })
    expect(answer.headers.get('request-id')).toBe('trace-0123.abc:1')
    expect(answer.body.request_id).toBe('trace-0123.abc:1')
  })

  it.each(['short', 'has spaces in it', 'a'.repeat(129), '<script>alert(1)</script>', 'ключ-ключ'])(
    'is made where it is not: %s',
    async (given) => {
      const headers = { 'x-request-id': Buffer.from(given).toString('latin1') }
      expect((await ask('/healthz', { headers })).headers.get('request-id')).toMatch(/^req_[0-9a-f]{32}$/)
    },
  )

  it('is on every answer, also on those of the library and on replays', async () => {
    const key = 'ids-everywhere-1'
    const answers = [
      await hook({ url: 'https://hooks.example.com/2' }, { key }),
      await hook({ url: 'https://hooks.example.com/2' }, { key }),
      await hook({ url: 'https://hooks.example.com/3' }, { key }),
      await hook({ url: 'https://hooks.example.com/4' }, { key: '' }),
      await ask('/docs/json'),
      await ask('/readyz'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 422, 400, 200, 200])
    const ids = answers.map(({ headers }) => headers.get('request-id'))
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.every((id) => id !== null)).toBe(true)
  })
})

it('still serves after all of this', async () => expect((await post(GOOD)).status).toBe(201))
