import { OnlyonceError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import { type OptionNames, refuseUnknown } from '../options.ts'

/**
 * What JSON can say.
 *
 * @example
 * const value: JsonValue = { amount: 1200, currency: 'eur' }
 */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [name: string]: JsonValue }

/**
 * Limits for JSON, under the names that they have in `LIMITS`.
 *
 * @example
 * parseStrictJson(body, { json_depth_max: 16 })
 */
export interface JsonLimits {
  readonly body_size_max_bytes?: number
  readonly json_depth_max?: number
  readonly json_members_max?: number
}

const NAMES: OptionNames<JsonLimits> = {
  body_size_max_bytes: true,
  json_depth_max: true,
  json_members_max: true,
}

/** Everything here recurses. Measured, `canonicalize` overflows an empty stack near 2,400 levels. */
const DEPTH_CEILING = 500

/**
 * Completes limits with the defaults and refuses what could not work.
 *
 * @example
 * resolveLimits({ json_depth_max: 16 }).json_members_max // 10000
 */
export function resolveLimits(limits: JsonLimits = LIMITS): Required<JsonLimits> {
  if (limits === LIMITS) return LIMITS
  refuseUnknown('The limits of JSON', limits, NAMES)
  const {
    body_size_max_bytes = LIMITS.body_size_max_bytes,
    json_depth_max = LIMITS.json_depth_max,
    json_members_max = LIMITS.json_members_max,
  } = limits
  const all = { body_size_max_bytes, json_depth_max, json_members_max }
  for (const [name, limit] of Object.entries(all)) {
    if (!Number.isSafeInteger(limit) || limit < 1) refuse(`${name} is a whole number above 0.`)
  }
  if (json_depth_max > DEPTH_CEILING) refuse(`json_depth_max is at most ${DEPTH_CEILING}.`)
  return all
}

/**
 * Sets a member as an own member, under any name. Assigning to `__proto__` would replace the prototype
 * and lose the member, and with it a difference between two requests.
 *
 * @example
 * setMember(object, '__proto__', 1)
 */
export function setMember(object: { [name: string]: JsonValue }, name: string, value: JsonValue): void {
  if (name === '__proto__') {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
  } else {
    object[name] = value
  }
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
