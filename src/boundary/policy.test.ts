import { describe, expect, it } from 'vitest'
import { LIMITS } from '../limits.ts'
import { operation, reply } from '../protect/operation.ts'
import type { ResolvedPolicy, RoutePolicy } from './policy.ts'
import { resolvePolicy } from './policy.ts'

const WRONG: Readonly<Record<string, unknown>> = {
  'its policy has no option protekt. Did you mean protect?': { protekt: 'handler' },
  'protect is one of handler, transaction': { protect: 'operation' },
  'methods is a list of POST, PATCH, PUT, DELETE': { methods: ['GET'] },
  'key is one of required, optional, issued': { key: 'maybe' },
  'header names no header': { header: [] },
  'header holds "a b"': { header: 'a b' },
  'scope is one of operation, account': { scope: 'world' },
  'retention_ms is a whole number': { retention_ms: 0 },
  'deadline_ms is a whole number': { deadline_ms: 1.5 },
  'lease_ms is a whole number': { lease_ms: Number.NaN },
  'in_progress_max_ms is a whole number': { in_progress_max_ms: -1 },
  'deadline_header holds ""': { deadline_header: '' },
  'fingerprint.body is one of raw, parsed': { fingerprint: { body: 'none' } },
  'final names "6xx"': { final: { '6xx': 'store' } },
  'final[404] is store or retry': { final: { 404: 'forget' } },
  'concurrency is conflict, accepted or { wait_ms }': { concurrency: 'queue' },
  'concurrency.wait_ms is a whole number': { concurrency: { wait_ms: 0 } },
  'reply_size_max_bytes is a whole number': { reply_size_max_bytes: 0 },
  'admit is a function': { admit: true },
  'Stripe-Should-Retry is never stored or replayed': { reply_headers: ['Stripe-Should-Retry'] },
  'RateLimit-Policy is never stored or replayed': { reply_headers: ['RateLimit-Policy'] },
  'Retry-After is never stored or replayed': { reply_headers: ['Retry-After'] },
  'Set-Cookie is never stored or replayed': { reply_headers: ['Set-Cookie'] },
  'X-RateLimit-Limit is never stored or replayed': { reply_headers: ['X-RateLimit-Limit'] },
  'traceparent is never stored or replayed': { reply_headers: ['traceparent'] },
  'stream concerns handlers': { stream: true, protect: 'transaction' },
  'an issued key belongs to one operation': { key: 'issued', scope: 'account' },
  'rerunnable concerns handlers': { rerunnable: true, protect: 'transaction' },
  'profile is one of stripe_v1, stripe_v2': { profile: 'stripe_v3' },
}

describe('a policy that makes no sense', () => {
  it.each(Object.entries(WRONG))('is refused, and the route is named: %s', (message, policy) => {
    const make = () => resolvePolicy(policy as RoutePolicy, 'POST /orders')
    expect(make).toThrow(expect.objectContaining({ code: 'option_invalid' }))
    expect(make).toThrow(`POST /orders: ${message}`)
  })
})

/** Which protections make no use of an option, by a value that asks for something. */
const UNUSED: Readonly<Record<string, [unknown, ...ResolvedPolicy['protect'][]]>> = {
  protect: ['transaction', 'operation'],
  isolation: ['serializable', 'handler', 'operation'],
  exclusive: [true, 'handler', 'operation'],
  strict_tx: [true, 'handler', 'operation'],
  lease_ms: [1_000, 'transaction'],
  in_progress_max_ms: [1_000, 'transaction'],
  rerunnable: [true, 'transaction', 'operation'],
  recover: [async () => ({ status: 'unknown' }), 'transaction', 'operation'],
  stream: [true, 'transaction', 'operation'],
  reply_size_max_bytes: [1_000, 'operation'],
  reply_headers: [['X-Order'], 'operation'],
  input: [() => ({}), 'handler', 'transaction'],
}
const BY: Readonly<Record<ResolvedPolicy['protect'], RoutePolicy>> = {
  handler: {},
  transaction: { protect: 'transaction' },
  operation: { operation: operation('orders.create', async () => reply(201, {})) },
}

describe.each(Object.entries(UNUSED))('%s', (name, [value, ...unused]) => {
  for (const protect of ['handler', 'transaction', 'operation'] as const) {
    const asked = { [name]: value } as RoutePolicy
    const own = { ...BY[protect], ...(name === 'protect' && protect !== 'operation' ? {} : asked) }
    if (!unused.includes(protect)) {
      it(`is taken by a route of a ${protect}`, () => {
        expect(resolvePolicy(own, 'POST /orders').protect).toBe(protect)
      })
      continue
    }
    it(`is refused by a route of a ${protect}`, () => {
      expect(() => resolvePolicy(own, 'POST /orders')).toThrow(`POST /orders: ${name} concerns `)
    })
    it(`may be a default that a route of a ${protect} makes no use of`, () => {
      const shared = resolvePolicy(BY[protect], 'POST /orders', asked)
      expect(shared).toEqual({ ...resolvePolicy(BY[protect], 'POST /orders'), final: shared.final })
    })
  }
})

describe('a policy', () => {
  it('asks for nothing with an option that is false', () => {
    expect(() => resolvePolicy({ exclusive: false, strict_tx: false }, 'a')).not.toThrow()
  })

  it('has a default for everything', () => {
    const policy = resolvePolicy({}, 'a')
    expect(policy).toMatchObject({
      operation: null,
      protect: 'handler',
      key: 'required',
      headers: ['idempotency-key'],
      scope: 'operation',
      deadline_header: null,
      body: null,
      validate: null,
      body_size_max_bytes: null,
      concurrency: 'conflict',
      reply_size_max_bytes: LIMITS.reply_size_max_bytes,
      stream: false,
      errors: 'problem',
      bounds: {},
    })
    expect([...policy.methods]).toEqual(['POST', 'PATCH'])
  })

  it('overrides single options of a profile', () => {
    const policy = resolvePolicy({ profile: 'stripe_v2', key: 'required', methods: ['post'] }, 'a')
    expect([policy.key, policy.scope, policy.errors, ...policy.methods]).toEqual([
      'required',
      'account',
      'stripe',
      'POST',
    ])
    expect(policy.bounds.retention_ms).toBe(30 * 86_400_000)
  })
})
