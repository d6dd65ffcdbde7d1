import type { Mode } from '../index.ts'
import { STRIPE_LIMITS } from './limits.ts'

export interface StripeOptions {
  /** `sk_test_…` or `rk_test_…` in test mode, `sk_live_…` or `rk_live_…` in live mode. */
  readonly secret_key: string
  readonly mode: Mode
  /** Where it is, if not at Stripe: a sandbox that speaks the same protocol. */
  readonly host?: string
  readonly port?: number
  /** `http` only in test mode, for a sandbox: the key goes over the wire as it is. */
  readonly protocol?: 'http' | 'https'
  readonly timeout_ms?: number
  readonly settle_ms?: number
  readonly key_lifetime_ms?: number
  /** What payments are made with. */
  readonly payment_method_types?: readonly string[]
}

export type CheckedOptions = Required<Omit<StripeOptions, 'payment_method_types'>> & {
  readonly payment_method_types: string[]
}

/** Checks what the adapter is given, once. No message has the key in it. */
export function checkOptions(options: StripeOptions): CheckedOptions {
  const { secret_key, mode, host = STRIPE_HOST, protocol = 'https' } = options
  const { port = protocol === 'https' ? 443 : 80, payment_method_types = ['card'] } = options
  const { timeout_ms, settle_ms, key_lifetime_ms } = { ...STRIPE_LIMITS, ...definedOnly(options) }
  if (mode !== 'test' && mode !== 'live') refuse('mode is test or live')
  const kind = /^(?:sk|rk)_(test|live)_[\x21-\x7e]+$/.exec(secret_key ?? '')?.[1]
  if (kind === undefined) refuse('secret_key begins with sk_test_, rk_test_, sk_live_ or rk_live_')
  if (kind !== mode) refuse(`secret_key is of ${kind} mode, and mode is ${mode}`)
  if (protocol !== 'http' && protocol !== 'https') refuse('protocol is http or https')
  if (protocol === 'http' && (mode === 'live' || host === STRIPE_HOST))
    refuse('protocol http is only for a sandbox')
  if (!Number.isInteger(port) || port < 1 || port > 65_535) refuse('port is a number from 1 to 65535')
  for (const [name, value] of Object.entries({ timeout_ms, settle_ms, key_lifetime_ms })) {
    if (!Number.isSafeInteger(value) || value < 1) refuse(`${name} is a whole number of milliseconds`)
  }
  if (timeout_ms <= STRIPE_LIMITS.timeout_margin_ms) {
    refuse(`timeout_ms is more than ${STRIPE_LIMITS.timeout_margin_ms}`)
  }
  return {
    secret_key,
    mode,
    host,
    port,
    protocol,
    timeout_ms,
    settle_ms,
    key_lifetime_ms,
    payment_method_types: [...payment_method_types],
  }
}

const STRIPE_HOST = 'api.stripe.com'

function definedOnly({ timeout_ms, settle_ms, key_lifetime_ms }: StripeOptions) {
  return {
    ...(timeout_ms !== undefined && { timeout_ms }),
    ...(settle_ms !== undefined && { settle_ms }),
    ...(key_lifetime_ms !== undefined && { key_lifetime_ms }),
  }
}

function refuse(detail: string): never {
  throw new TypeError(`The Stripe gateway cannot be set up: ${detail}.`)
}
