import { describe, expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { operation, reply } from '../operation/operation.ts'
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
  'retentionMs is a whole number': { retentionMs: 0 },
  'deadlineMs is a whole number': { deadlineMs: 1.5 },
  'leaseMs is a whole number': { leaseMs: Number.NaN },
  'inProgressMaxMs is a whole number': { inProgressMaxMs: -1 },
  'deadlineHeader holds ""': { deadlineHeader: '' },
  'fingerprint.body is one of raw, parsed': { fingerprint: { body: 'none' } },
  'final names "6xx"': { final: { '6xx': 'store' } },
  'final[404] is store or retry': { final: { 404: 'forget' } },
  'onConcurrent is conflict, accepted or { waitMs }': { onConcurrent: 'queue' },
  'onConcurrent.waitMs is a whole number': { onConcurrent: { waitMs: 0 } },
  'replySizeMaxBytes is a whole number': { replySizeMaxBytes: 0 },
  'admit is a function': { admit: true },
  'Stripe-Should-Retry is never stored or replayed': { replyHeaders: ['Stripe-Should-Retry'] },
  'RateLimit-Policy is never stored or replayed': { replyHeaders: ['RateLimit-Policy'] },
  'Retry-After is never stored or replayed': { replyHeaders: ['Retry-After'] },
  'Set-Cookie is never stored or replayed': { replyHeaders: ['Set-Cookie'] },
  'X-RateLimit-Limit is never stored or replayed': { replyHeaders: ['X-RateLimit-Limit'] },
  'traceparent is never stored or replayed': { replyHeaders: ['traceparent'] },
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
  strictTx: [true, 'handler', 'operation'],
  leaseMs: [1_000, 'transaction'],
  inProgressMaxMs: [1_000, 'transaction'],
  rerunnable: [true, 'transaction', 'operation'],
  recover: [async () => ({ status: 'unknown' }), 'transaction', 'operation'],
  stream: [true, 'transaction', 'operation'],
  replySizeMaxBytes: [1_000, 'operation'],
  replyHeaders: [['X-Order'], 'operation'],
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
    expect(() => resolvePolicy({ exclusive: false, strictTx: false }, 'a')).not.toThrow()
  })

  it('has a default for everything', () => {
    const policy = resolvePolicy({}, 'a')
    expect(policy).toMatchObject({
      operation: null,
      protect: 'handler',
      key: 'required',
      headers: ['idempotency-key'],
      scope: 'operation',
      deadlineHeader: null,
      body: null,
      validate: null,
      bodySizeMaxBytes: null,
      onConcurrent: 'conflict',
      replySizeMaxBytes: LIMITS.replySizeMaxBytes,
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
    expect(policy.bounds.retentionMs).toBe(30 * 86_400_000)
  })
})
