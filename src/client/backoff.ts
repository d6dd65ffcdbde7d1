import { wallNow } from './clock.ts'

/**
 * How long to wait before retry `n`, from 1: `min(initial * 2^(n-1), max)`, of which between half and the whole is taken by chance, and never
 * less than `initial`. The same as in Stripe's SDK.
 */
export function backoffMs(n: number, initialMs: number, maxMs: number, chance = Math.random()): number {
  return Math.max(initialMs, Math.min(initialMs * 2 ** (n - 1), maxMs) * (0.5 + chance / 2))
}

/**
 * What `Retry-After` asks for, in milliseconds; null where it is missing or unreadable. A date is compared with the `Date` of the same answer,
 * so that the clock of this machine does not count where the server tells its own.
 */
export function retryAfterMs(headers: Headers): number | null {
  const text = headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text) * 1_000
  const at = Date.parse(text)
  if (Number.isNaN(at)) return null
  const date = Date.parse(headers.get('date') ?? '')
  return Math.max(0, at - (Number.isNaN(date) ? wallNow() : date))
}
