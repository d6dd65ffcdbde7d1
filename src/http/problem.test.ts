import { describe, expect, it } from 'vitest'
import { ERRORS, type ErrorCode, notExecuted, OnlyonceError } from '../core/errors.ts'
import { problemReply } from './problem.ts'

const PLAIN = { errors: 'problem', problemBase: 'https://example.com/p/' } as const
const STRIPE = { ...PLAIN, errors: 'stripe' } as const
const CODES = Object.keys(ERRORS) as ErrorCode[]
const said = ({ body }: { body: Buffer }) => JSON.parse(body.toString())

describe('a problem', () => {
  it.each(CODES)('is what the table of errors says: %s', (code) => {
    const { status, retryable, executed, message } = ERRORS[code]
    const reply = problemReply({ code, status, retryable, executed, message }, PLAIN)
    expect(reply.status).toBe(status)
    expect(reply.headers).toEqual([
      ['content-type', 'application/problem+json'],
      ['cache-control', 'no-store'],
      ...(status === 503 && retryable ? [['retry-after', '1']] : []),
    ])
    expect(said(reply)).toEqual({
      type: `https://example.com/p/${code}`,
      title: expect.stringMatching(/^[A-Z]/),
      status,
      detail: message,
      code,
      retryable,
      executed,
    })
  })

  it('says of the word of an author alone that it speaks for one request', () => {
    expect(said(problemReply(notExecuted(), PLAIN)).executed).toBe('not_by_this_request')
  })

  it('tells in whole seconds when to come again, and never at once', () => {
    const seconds = (retryAfterMs: number) =>
      new Map(problemReply(new OnlyonceError('in_progress'), PLAIN, { retryAfterMs }).headers).get(
        'retry-after',
      )
    expect([seconds(0), seconds(1_000), seconds(1_001)]).toEqual(['1', '1', '2'])
  })

  it('carries the status that a route chose', () => {
    const reply = problemReply(new OnlyonceError('in_progress'), PLAIN, { status: 202 })
    expect([reply.status, said(reply).status]).toEqual([202, 202])
  })
})

describe("a problem in Stripe's form", () => {
  it.each([
    ['key_reused', 400, 'idempotency_error', 'key_reused', 'false'],
    ['in_progress', 409, 'idempotency_error', 'idempotency_key_in_use', 'true'],
    ['key_missing', 400, 'invalid_request_error', 'key_missing', 'false'],
    ['store_unavailable', 503, 'api_error', 'store_unavailable', 'true'],
  ] as const)('%s', (code, status, type, name, retry) => {
    const reply = problemReply(new OnlyonceError(code), STRIPE)
    expect(reply.status).toBe(status)
    expect(said(reply).error).toMatchObject({ type, code: name, executed: ERRORS[code].executed })
    expect(new Map(reply.headers).get('stripe-should-retry')).toBe(retry)
  })
})
