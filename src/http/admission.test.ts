import { describe, expect, it } from 'vitest'
import { askedOf, type Refusal, refusalOf, refusedReply } from './admission.ts'

const PLAIN = { errors: 'problem', problemBase: 'https://example.com/p/' } as const
const STRIPE = { ...PLAIN, errors: 'stripe' } as const
const said = ({ body }: { body: Buffer }) => JSON.parse(body.toString())

describe('an answer of admit', () => {
  it('lets a request run only where it says so', () => {
    expect(refusalOf({ admit: true })).toBe(null)
    expect(refusalOf({ admit: false, code: 'sold_out' })).toMatchObject({ code: 'sold_out' })
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a boolean', true],
    ['no decision', {}],
    ['a decision that is almost one', { admit: 1 }],
    ['no code', { admit: false }],
    ['a code that is a sentence', { admit: false, code: 'Too many!' }],
    ['the code of something else', { admit: false, code: 'key_reused' }],
    ['a status that means something else', { admit: false, code: 'sold_out', status: 422 }],
    ['a wait without a number', { admit: false, code: 'sold_out', retryAfterMs: Number.NaN }],
  ])('that is none is an error, and lets nothing through: %s', (_, given) => {
    expect(() => refusalOf(given)).toThrow(
      expect.objectContaining({ code: 'setup_invalid', executed: 'not_by_this_request' }),
    )
  })
})

describe('a refusal', () => {
  const refusal: Refusal = { admit: false, code: 'rate_limited', retryAfterMs: 1_200 }

  it.each([
    [{ code: 'rate_limited' }, 429],
    [{ code: 'overloaded' }, 503],
    [{ code: 'sold_out' }, 429],
    [{ code: 'sold_out', status: 503 }, 503],
  ] as const)('has the status of its code, or its own: %j', (given, status) => {
    const reply = refusedReply({ admit: false, ...given }, PLAIN)
    expect(reply.status).toBe(status)
    expect(said(reply)).toMatchObject({ code: given.code, status, retryable: true })
    expect(said(reply).type).toBe(`https://example.com/p/${given.code}`)
    expect(said(reply).detail).toMatch(/\.$/)
  })

  it('sends what it is given in place of the usual, and leaves what describes the body', () => {
    const headers = { 'Retry-After': '9', 'Content-Length': '3', RateLimit: '"a";r=0' }
    const reply = refusedReply({ ...refusal, detail: 'Later.', headers }, PLAIN)
    expect(said(reply).detail).toBe('Later.')
    expect(reply.headers).toEqual([
      ['content-type', 'application/problem+json'],
      ['cache-control', 'no-store'],
      ['retry-after', '9'],
      ['ratelimit', '"a";r=0'],
    ])
  })

  it("has Stripe's form where the route speaks it", () => {
    const reply = refusedReply(refusal, STRIPE)
    expect(reply.status).toBe(429)
    expect(said(reply).error).toMatchObject({ type: 'invalid_request_error', code: 'rate_limit' })
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      'retry-after': '2',
      'stripe-should-retry': 'true',
    })
  })
})

it('what is asked joins a header that came twice, and parses JSON only', () => {
  const request = {
    method: 'POST',
    route: '/a',
    path: '/a',
    pathParams: {},
    query: '',
    account: 'a',
    header: (name: string) => ({ 'x-a': ['1', '2'], 'content-type': 'text/plain' })[name],
    body: () => ({ kind: 'raw', bytes: Buffer.from('{}') }) as const,
  }
  const asked = askedOf(request, request.body(), { account: 'a', operation: 'b', key: 'c' })
  expect([asked.header('X-A'), asked.header('x-b'), asked.body()]).toEqual(['1, 2', undefined, undefined])
})
