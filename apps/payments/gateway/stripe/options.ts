import type { Mode } from '../index.ts'
import { STRIPE_LIMITS } from './limits.ts'

export interface StripeOptions {
  /** `sk_test_…` or `rk_test_…` in test mode, `sk_live_…` or `rk_live_…` in live mode. */
  readonly secretKey: string
  readonly mode: Mode
  /** Where it is, if not at Stripe: a sandbox that speaks the same protocol. */
  readonly host?: string
  readonly port?: number
  /** `http` only in test mode, for a sandbox: the key goes over the wire as it is. */
  readonly protocol?: 'http' | 'https'
  readonly timeoutMs?: number
  readonly visibleWithinMs?: number
  readonly keyLifetimeMs?: number
  /** What payments are made with. */
  readonly paymentMethodTypes?: readonly string[]
}

export type CheckedOptions = Required<Omit<StripeOptions, 'paymentMethodTypes'>> & {
  readonly paymentMethodTypes: string[]
}

/** Checks what the adapter is given, once. No message has the key in it. */
export function checkOptions(options: StripeOptions): CheckedOptions {
  const { secretKey, mode, host = STRIPE_HOST, protocol = 'https' } = options
  const { port = protocol === 'https' ? 443 : 80, paymentMethodTypes = ['card'] } = options
  const { timeoutMs, visibleWithinMs, keyLifetimeMs } = { ...STRIPE_LIMITS, ...definedOnly(options) }
  if (mode !== 'test' && mode !== 'live') refuse('mode is test or live')
  const kind = /^(?:sk|rk)_(test|live)_[\x21-\x7e]+$/.exec(secretKey ?? '')?.[1]
  if (kind === undefined) refuse('secretKey begins with sk_test_, rk_test_, sk_live_ or rk_live_')
  if (kind !== mode) refuse(`secretKey is of ${kind} mode, and mode is ${mode}`)
  if (protocol !== 'http' && protocol !== 'https') refuse('protocol is http or https')
  if (protocol === 'http' && (mode === 'live' || host === STRIPE_HOST))
    refuse('protocol http is only for a sandbox')
  if (!Number.isInteger(port) || port < 1 || port > 65_535) refuse('port is a number from 1 to 65535')
  for (const [name, value] of Object.entries({ timeoutMs, visibleWithinMs, keyLifetimeMs })) {
    if (!Number.isSafeInteger(value) || value < 1) refuse(`${name} is a whole number of milliseconds`)
  }
  if (timeoutMs <= STRIPE_LIMITS.timeoutMarginMs) {
    refuse(`timeoutMs is more than ${STRIPE_LIMITS.timeoutMarginMs}`)
  }
  return {
    secretKey,
    mode,
    host,
    port,
    protocol,
    timeoutMs,
    visibleWithinMs,
    keyLifetimeMs,
    paymentMethodTypes: [...paymentMethodTypes],
  }
}

const STRIPE_HOST = 'api.stripe.com'

function definedOnly({ timeoutMs, visibleWithinMs, keyLifetimeMs }: StripeOptions) {
  return {
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(visibleWithinMs !== undefined && { visibleWithinMs }),
    ...(keyLifetimeMs !== undefined && { keyLifetimeMs }),
  }
}

function refuse(detail: string): never {
  throw new TypeError(`The Stripe gateway cannot be set up: ${detail}.`)
}
