import { parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import { isNeverKept } from '../../src/protect/never-kept.ts'
import { admissionOf, limitHeaders, type Verdict } from '../../src/rate-limits/index.ts'

const WINDOW = { name: 'live', limit: 100, perMs: 1_000, resetMs: 640, counted: true }
const ALLOWED: Verdict = { ...WINDOW, allowed: true, remaining: 42 }
const REFUSED: Verdict = { ...WINDOW, allowed: false, remaining: 0, resetMs: 1_040, retryAfterMs: 1_040 }

describe('the headers of a limit', () => {
  it('are those of the draft, as structured fields', () => {
    const headers = limitHeaders(ALLOWED)
    expect(headers).toEqual({ 'RateLimit-Policy': '"live";q=100;w=1', RateLimit: '"live";r=42;t=1' })
    for (const value of Object.values(headers)) expect(parseList(value)).toHaveLength(1)
  })

  it('tell who is refused when to come again, and why', () => {
    expect(limitHeaders(REFUSED, { reason: 'global-rate' })).toEqual({
      'RateLimit-Policy': '"live";q=100;w=1',
      RateLimit: '"live";r=0;t=2',
      'Retry-After': '2',
      'Stripe-Should-Retry': 'true',
      'Stripe-Rate-Limited-Reason': 'global-rate',
    })
    expect(() => limitHeaders(REFUSED, { reason: 'a\r\nb: c' })).toThrow('a reason is a word')
  })

  it('tell nothing of a window that nobody has counted', () => {
    expect(limitHeaders({ ...ALLOWED, counted: false })).toEqual({})
    expect(Object.keys(limitHeaders({ ...REFUSED, counted: false }))).not.toContain('RateLimit')
  })

  it('are never stored or replayed', () => {
    const names = Object.keys(limitHeaders(REFUSED)).filter((name) => name !== 'Retry-After')
    expect(names.filter((name) => !isNeverKept(name))).toEqual([])
  })
})

it('a verdict becomes an admission', () => {
  expect(admissionOf(ALLOWED)).toEqual({ admit: true })
  expect(admissionOf(REFUSED, { code: 'velocity_limited', reason: 'card', detail: 'Wait.' })).toEqual({
    admit: false,
    code: 'velocity_limited',
    status: 429,
    detail: 'Wait.',
    retryAfterMs: 1_040,
    headers: limitHeaders(REFUSED, { reason: 'card' }),
  })
})

it('a limit that refuses because it cannot count says so, and not that it was too often', () => {
  const blind = { ...REFUSED, counted: false }
  expect(admissionOf(blind, { code: 'velocity_limited' })).toMatchObject({
    admit: false,
    code: 'limits_unavailable',
    status: 503,
    retryAfterMs: 1_040,
  })
})
