import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'

const resolved: unique symbol = Symbol.for('onlyonce.key_rules')

/**
 * What a key must look like, beyond what no key may be.
 *
 * @example
 * const rules: KeyRules = { lengthMin: 16 }
 */
export interface KeyRules {
  /**
   * Shortest key that is accepted, from 1 to 255 characters.
   *
   * @default 8
   */
  readonly lengthMin?: number
  /**
   * Accept keys that look like card numbers, e-mail addresses, phone or social-security numbers.
   *
   * @default false
   */
  readonly allowSensitive?: boolean
  /**
   * Whether clients may bring keys of their own (`accepted`, the default), or only such as `once.issueKey` gave
   * them (`required`). A key that begins like an issued one is verified in either case.
   *
   * @default 'accepted'
   */
  readonly issued?: 'accepted' | 'required'
}

/**
 * Rules that have been checked and completed; only `keyRules` makes them.
 *
 * @example
 * const rules: ResolvedKeyRules = keyRules({ lengthMin: 16 })
 */
export interface ResolvedKeyRules {
  readonly lengthMin: number
  readonly allowSensitive: boolean
  readonly issued: 'accepted' | 'required'
  readonly [resolved]: true
}

/**
 * Checks rules once and fills in the defaults. Rules that are resolved already come back as they are.
 *
 * @example
 * const rules = keyRules({ lengthMin: 16 })
 * parseKeyHeader(request.headers['idempotency-key'], rules)
 */
export function keyRules(options: KeyRules | ResolvedKeyRules = {}): ResolvedKeyRules {
  if (typeof options !== 'object' || options === null) refuse('Key rules are an object.')
  if (resolved in options) return options
  refuseUnknown('keys', options, NAMES)
  const { lengthMin = LIMITS.keyLengthMin, allowSensitive = false, issued = 'accepted' } = options
  if (!Number.isInteger(lengthMin) || lengthMin < 1 || lengthMin > LIMITS.keyLengthMax) {
    refuse(`lengthMin is a whole number from 1 to ${LIMITS.keyLengthMax}.`)
  }
  if (typeof allowSensitive !== 'boolean') refuse('allowSensitive is true or false.')
  if (issued !== 'accepted' && issued !== 'required') refuse('issued is accepted or required.')
  return Object.freeze({ lengthMin, allowSensitive, issued, [resolved]: true as const })
}

const NAMES: OptionNames<KeyRules> = { lengthMin: true, allowSensitive: true, issued: true }

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
