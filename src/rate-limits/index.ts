/**
 * How fast, and how much at once: limits for APIs, over PostgreSQL. Needs the package `rate-limiter-flexible`.
 *
 * @example
 * import { admissionOf, rateLimit } from 'onlyonce/rate-limits'
 *
 * const limit = rateLimit({ pool, name: 'live', points: 100, perMs: 1_000 })
 * app.post('/orders', { preHandler: idempotent({ admit: async ({ account }) => admissionOf(await limit.take(account)) }) }, createOrder)
 */
export { admissionOf, limitHeaders, type Reason } from './headers.ts'
export type { LimiterOptions, Rule } from './options.ts'
export { type Overload, type OverloadOptions, overload } from './overload.ts'
export { type RateLimit, type RateLimitOptions, rateLimit } from './rate-limit.ts'
export { type VelocityLimit, type VelocityLimitOptions, velocityLimit } from './velocity-limit.ts'
export type { Verdict, Window } from './verdict.ts'
