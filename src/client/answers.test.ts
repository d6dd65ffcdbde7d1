import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { ANSWERS, clientAnswers, OF_OTHER_DOORS, provedBy } from '../../build/client-answers.ts'
import { ERRORS, isMistake } from '../core/errors.ts'
import { CONVENTIONS } from './conventions.ts'
import { judge } from './judge.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

it('the table of answers is that of the errors: run npm run client-answers', () => {
  expect(readFileSync(join(ROOT, ANSWERS), 'utf8')).toBe(clientAnswers())
})

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  })
}

const judged = async (response: Response, api: keyof typeof CONVENTIONS = 'onlyonce') =>
  judge(response, await response.text(), CONVENTIONS[api])

describe('every code of the server', () => {
  const CODES = Object.entries(ERRORS)
  it.each(CODES)('%s means what its answer says', async (code, { status, retryable, executed }) => {
    const verdict = await judged(answer(status, { code, retryable, executed }))
    const proved = code === 'key_reused' ? 'unknown' : executed
    expect(verdict).toMatchObject({ code, executed: proved, outcome: false })
    const refused = proved === 'no' || proved === 'not_by_this_request'
    const wait = [202, 409, 422].includes(status)
    expect(verdict.next).toBe(retryable ? (wait ? 'wait' : 'retry') : refused ? 'return' : 'stop')
  })

  const OF_KEYS = CODES.filter(([code]) => !OF_OTHER_DOORS.test(code))
  it.each(OF_KEYS)('%s is known where the answer has its code alone', async (code, entry) => {
    const { executed, next } = await judged(answer(entry.status, { code }))
    const proved = provedBy(code, entry.executed)
    if (!isMistake(code)) {
      expect(executed).toBe(proved)
      expect(['retry', 'wait'].includes(next)).toBe(entry.retryable)
    } else if (executed !== proved) {
      // The status alone says less, never more.
      expect(executed).toBe('unknown')
    }
  })
})

describe('other answers', () => {
  const json = (status: number, body: unknown, headers = {}) => answer(status, body, headers)
  const replayed = { 'idempotent-replayed': 'true' }
  const CASES: [string, Response, keyof typeof CONVENTIONS, object][] = [
    ['a result', json(201, {}), 'onlyonce', { next: 'return', executed: 'yes', outcome: true }],
    ['a decline', json(402, {}), 'onlyonce', { next: 'return', executed: 'no', outcome: true }],
    [
      'a stored result',
      json(201, {}, replayed),
      'onlyonce',
      { next: 'return', replayed: true, outcome: true },
    ],
    [
      'a stored refusal',
      json(422, {}, replayed),
      'onlyonce',
      { next: 'return', executed: 'no', outcome: true },
    ],
    ['a stored failure', json(500, {}, replayed), 'stripe', { next: 'stop', executed: 'unknown' }],
    [
      '202 in progress',
      json(202, { code: 'in_progress', retryable: true, executed: 'unknown' }),
      'onlyonce',
      { next: 'wait', executed: 'unknown' },
    ],
    ['202 accepted', json(202, { id: 1 }), 'onlyonce', { next: 'return', executed: 'yes' }],
    ['401', json(401, {}), 'onlyonce', { next: 'return', executed: 'not_by_this_request', outcome: false }],
    [
      '404 as HTML',
      new Response('<p>', { status: 404 }),
      'draft',
      { next: 'return', executed: 'not_by_this_request' },
    ],
    ['409 of the draft', json(409, {}), 'draft', { next: 'wait', executed: 'unknown' }],
    [
      '422 of the draft',
      json(422, {}),
      'draft',
      { next: 'return', executed: 'not_by_this_request', outcome: false },
    ],
    ['408', json(408, {}), 'draft', { next: 'retry', executed: 'unknown' }],
    ['425', json(425, {}), 'draft', { next: 'retry', executed: 'not_by_this_request' }],
    ['429', json(429, {}), 'draft', { next: 'retry', executed: 'not_by_this_request' }],
    [
      '502 of a proxy',
      new Response('bad gateway', { status: 502 }),
      'draft',
      { next: 'retry', executed: 'unknown' },
    ],
    [
      'broken JSON',
      new Response('{', { status: 503, headers: { 'content-type': 'application/json' } }),
      'draft',
      { next: 'retry' },
    ],
    ['JSON that is no object', json(503, null), 'draft', { next: 'retry', executed: 'unknown' }],
    [
      'Stripe: do not retry',
      json(500, {}, { 'stripe-should-retry': 'false' }),
      'stripe',
      { next: 'stop', executed: 'unknown' },
    ],
    [
      'Stripe: retry',
      json(400, {}, { 'stripe-should-retry': 'true' }),
      'stripe',
      { next: 'retry', executed: 'unknown' },
    ],
    [
      'Stripe: a reused key',
      json(400, { error: { type: 'idempotency_error' } }),
      'stripe',
      { next: 'stop', executed: 'unknown', code: 'idempotency_error' },
    ],
    [
      'Stripe: in use',
      json(409, { error: { type: 'idempotency_error', code: 'idempotency_key_in_use' } }),
      'stripe',
      { next: 'wait', executed: 'unknown' },
    ],
    [
      'Stripe: a decline',
      json(402, { error: { type: 'card_error', code: 'card_declined' } }),
      'stripe',
      { next: 'return', outcome: true },
    ],
    [
      'onlyonce in the form of Stripe',
      json(
        409,
        { error: { type: 'idempotency_error', code: 'parked', executed: 'unknown' } },
        { 'stripe-should-retry': 'false' },
      ),
      'stripe',
      { next: 'stop', executed: 'unknown', code: 'parked' },
    ],
    [
      'Adyen: transient',
      json(503, {}, { 'transient-error': 'true' }),
      'adyen',
      { next: 'retry', executed: 'unknown' },
    ],
    [
      'Adyen: in progress',
      json(422, { errorCode: '704' }, { 'transient-error': 'true' }),
      'adyen',
      { next: 'wait', executed: 'unknown' },
    ],
    ['Adyen: not transient', json(500, {}), 'adyen', { next: 'stop', executed: 'unknown' }],
    ['Adyen: invalid', json(422, {}), 'adyen', { next: 'return', executed: 'not_by_this_request' }],
    [
      'PayPal: in progress',
      json(409, { name: 'RESOURCE_CONFLICT' }),
      'paypal',
      { next: 'wait', executed: 'unknown' },
    ],
    [
      'PayPal: a reused id',
      json(400, { name: 'DUPLICATE_REQUEST_ID' }),
      'paypal',
      { next: 'stop', executed: 'unknown' },
    ],
  ]
  it.each(CASES)('%s', async (_, response, api, expected) => {
    expect(await judged(response, api)).toMatchObject(expected)
  })
})
