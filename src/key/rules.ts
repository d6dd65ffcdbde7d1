import { OnlyonceError } from '../errors.ts'
import { LIMITS } from '../limits.ts'

const resolved: unique symbol = Symbol('resolved')

/**
 * What a key must look like, beyond what no key may be.
 *
 * @example
 * const rules: KeyRules = { length_min: 16 }
 */
export interface KeyRules {
  /** Shortest key that is accepted, from 1 to 255 characters. */
  readonly length_min?: number
  /** Accept keys that look like card numbers, e-mail addresses, phone or social-security numbers. */
  readonly allow_sensitive?: boolean
}

/**
 * Rules that have been checked and completed; only `keyRules` makes them.
 *
 * @example
 * const rules: ResolvedKeyRules = keyRules({ length_min: 16 })
 */
export interface ResolvedKeyRules {
  readonly length_min: number
  readonly allow_sensitive: boolean
  readonly [resolved]: true
}

/**
 * Checks rules once and fills in the defaults. Rules that are resolved already come back as they are.
 *
 * @example
 * const rules = keyRules({ length_min: 16 })
 * parseKeyHeader(request.headers['idempotency-key'], rules)
 */
export function keyRules(options: KeyRules | ResolvedKeyRules = {}): ResolvedKeyRules {
  if (typeof options !== 'object' || options === null) refuse('Key rules are an object.')
  if (resolved in options) return options
  for (const name of Object.keys(options)) {
    if (name !== 'length_min' && name !== 'allow_sensitive') refuse(`Key rules have no option ${name}.`)
  }
  const { length_min = LIMITS.key_length_min, allow_sensitive = false } = options
  if (!Number.isInteger(length_min) || length_min < 1 || length_min > LIMITS.key_length_max) {
    refuse(`length_min is a whole number from 1 to ${LIMITS.key_length_max}.`)
  }
  if (typeof allow_sensitive !== 'boolean') refuse('allow_sensitive is true or false.')
  return Object.freeze({ length_min, allow_sensitive, [resolved]: true as const })
}

/**
 * The rules where none are given.
 *
 * @example
 * checkKey(key, KEY_RULES_DEFAULT)
 */
export const KEY_RULES_DEFAULT: ResolvedKeyRules = keyRules()

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
