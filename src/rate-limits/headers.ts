import { type BareItem, serializeList } from 'structured-headers'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type { Admission } from '../http/index.ts'
import { refuse } from './options.ts'
import type { Verdict } from './verdict.ts'

export interface Reason {
  /** Which limit it was, for `Stripe-Rate-Limited-Reason`: `global-rate`, `card-velocity`. Default: the limiter's name. */
  readonly reason?: string
}

const REASON: OptionNames<Reason> = { reason: true }

interface AdmissionOptions extends Reason {
  /** Default: `rate_limited`. */
  readonly code?: string
  readonly detail?: string
}

const ADMISSION: OptionNames<AdmissionOptions> = { ...REASON, code: true, detail: true }

/**
 * What a reply tells of a limit: `RateLimit-Policy` and `RateLimit` of the IETF draft (draft-ietf-httpapi-ratelimit-headers, since its version 08), and
 * where it refuses also `Retry-After`, and what Stripe's clients go by. None of them is ever stored or replayed. Nothing is told
 * of a window that was not counted.
 *
 * @example
 * limitHeaders(verdict)['RateLimit'] // '"live";r=99;t=1'
 */
export function limitHeaders(verdict: Verdict, options: Reason = {}): Record<string, string> {
  refuseUnknown('limitHeaders()', options, REASON)
  const { reason = verdict.name } = options
  if (!/^[\x21-\x7e]{1,100}$/.test(reason)) refuse('a reason is a word of printable ASCII.')
  const { name, limit, perMs, remaining, resetMs } = verdict
  const told: Record<string, string> = verdict.counted
    ? {
        'RateLimit-Policy': item(name, { q: limit, w: seconds(perMs) }),
        RateLimit: item(name, { r: remaining, t: seconds(resetMs) }),
      }
    : {}
  if (verdict.allowed) return told
  return {
    ...told,
    'Retry-After': `${seconds(verdict.retryAfterMs)}`,
    'Stripe-Should-Retry': 'true',
    'Stripe-Rate-Limited-Reason': reason,
  }
}

/**
 * A verdict as what `admit` of a route answers: 429 where it was too often, and 503 `limits_unavailable` where the store could not
 * tell and the limiter refuses then (`onError: 'refuse'`).
 *
 * @example
 * const admit: Admit = async ({ account }) => admissionOf(await limit.take(account))
 */
export function admissionOf(verdict: Verdict, options: AdmissionOptions = {}): Admission {
  refuseUnknown('admissionOf()', options, ADMISSION)
  if (verdict.allowed) return { admit: true }
  const { code = 'rate_limited', detail, ...reason } = options
  // Not counted is not too often: the client did nothing wrong, and is told so.
  const uncounted = { admit: false, code: 'limits_unavailable', status: 503 } as const
  const counted = { admit: false, code, status: 429 } as const
  return {
    ...(verdict.counted ? counted : uncounted),
    retryAfterMs: verdict.retryAfterMs,
    headers: limitHeaders(verdict, reason),
    ...(detail === undefined ? {} : { detail }),
  }
}

function item(name: string, parameters: Readonly<Record<string, BareItem>>): string {
  return serializeList([[name, new Map(Object.entries(parameters))]])
}

/** Whole ones, and never none: who comes back at once comes too early. */
function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
