import type { RoutePolicy } from './policy.ts'

/** Contracts of other APIs, as presets of the same policy. */
export type Profile = 'stripe_v1' | 'stripe_v2'

interface Preset {
  readonly policy: Omit<RoutePolicy, 'profile'>
  readonly errors: 'problem' | 'stripe'
}

const STRIPE: Omit<RoutePolicy, 'profile'> = {
  key: 'optional',
  scope: 'account',
  header: 'Idempotency-Key',
}

export const PROFILES: Readonly<Record<Profile, Preset>> = {
  /** What the first request came to is stored, errors of the server included. */
  stripe_v1: {
    policy: { ...STRIPE, methods: ['POST'], final: { '4xx': 'store', '5xx': 'store' } },
    errors: 'stripe',
  },
  /** A request that failed runs again; DELETE is protected too. */
  stripe_v2: {
    policy: {
      ...STRIPE,
      methods: ['POST', 'DELETE'],
      final: { '5xx': 'retry' },
      retentionMs: 30 * 86_400_000,
    },
    errors: 'stripe',
  },
}
