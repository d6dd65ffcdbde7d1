import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'

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
 * parseStrictJson(body, { jsonDepthMax: 16 })
 */
export interface JsonLimits {
  /** @default 1_048_576 */
  readonly bodySizeMaxBytes?: number
  /** @default 64 */
  readonly jsonDepthMax?: number
  /** @default 10_000 */
  readonly jsonMembersMax?: number
}

const NAMES: OptionNames<JsonLimits> = {
  bodySizeMaxBytes: true,
  jsonDepthMax: true,
  jsonMembersMax: true,
}

/** Everything here recurses. Measured, `canonicalize` overflows an empty stack near 2,400 levels. */
const DEPTH_CEILING = 500

/**
 * Completes limits with the defaults and refuses what could not work.
 *
 * @example
 * resolveLimits({ jsonDepthMax: 16 }).jsonMembersMax // 10000
 */
export function resolveLimits(limits: JsonLimits = LIMITS): Required<JsonLimits> {
  if (limits === LIMITS) return LIMITS
  refuseUnknown('The limits of JSON', limits, NAMES)
  const {
    bodySizeMaxBytes = LIMITS.bodySizeMaxBytes,
    jsonDepthMax = LIMITS.jsonDepthMax,
    jsonMembersMax = LIMITS.jsonMembersMax,
  } = limits
  const all = { bodySizeMaxBytes, jsonDepthMax, jsonMembersMax }
  for (const [name, limit] of Object.entries(all)) {
    if (!Number.isSafeInteger(limit) || limit < 1) refuse(`${name} is a whole number above 0.`)
  }
  if (jsonDepthMax > DEPTH_CEILING) refuse(`jsonDepthMax is at most ${DEPTH_CEILING}.`)
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
