import { invalidRequest } from './failure.ts'
import type { Parameter, ParameterMap } from './form.ts'

const METADATA_MAX = 50
const METADATA_NAME_MAX = 40
const METADATA_VALUE_MAX = 500
const TEXT_MAX = 1_000
const CURRENCIES = new Set(Intl.supportedValuesOf('currency').map((code) => code.toLowerCase()))

export type Reader<Value> = (value: Parameter, name: string) => Value

/** What a route knows: a name, and how to read it. A name that is not here is refused. */
export type Known = Readonly<Record<string, Reader<unknown>>>
type Read<K extends Known> = { readonly [Name in keyof K]?: ReturnType<K[Name]> }

/** Reads parameters; each that is unknown or malformed is refused by name, as Stripe does. */
export function readParameters<K extends Known>(form: ParameterMap, known: K): Read<K> {
  const values: Record<string, unknown> = {}
  for (const [name, value] of form) {
    if (!Object.hasOwn(known, name)) {
      throw invalidRequest(`Received unknown parameter: ${name}`, 'parameter_unknown', name)
    }
    values[name] = known[name]!(value, name)
  }
  return values as Read<K>
}

export function required<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw invalidRequest(`Missing required param: ${name}.`, 'parameter_missing', name)
  return value
}

/** Taken as it comes, and without effect. */
export const tolerated: Reader<undefined> = () => undefined

export const text: Reader<string> = (value, name) => {
  if (typeof value !== 'string') throw invalidRequest(`Invalid string: ${name}`, undefined, name)
  if (value === '') {
    throw invalidRequest(`You passed an empty string for '${name}'.`, 'parameter_invalid_empty', name)
  }
  if (value.length > TEXT_MAX) {
    throw invalidRequest(`Invalid string: ${name} is too long.`, 'parameter_invalid_string', name)
  }
  return value
}

export const integer: Reader<number> = (value, name) => {
  const number = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (Number.isNaN(number)) {
    throw invalidRequest(`Invalid integer: ${describe(value)}`, 'parameter_invalid_integer', name)
  }
  return number
}

export const positive: Reader<number> = (value, name) => {
  const number = integer(value, name)
  if (number >= 1) return number
  throw invalidRequest('This value must be greater than or equal to 1.', 'parameter_invalid_integer', name)
}

export const boolean: Reader<boolean> = (value, name) => {
  if (value === 'true') return true
  if (value === 'false') return false
  throw invalidRequest(`Invalid boolean: ${describe(value)}`, undefined, name)
}

export function oneOf<const Value extends string>(...values: Value[]): Reader<Value> {
  return (value, name) => {
    const found = values.find((known) => known === value)
    if (found !== undefined) return found
    throw invalidRequest(`Invalid ${name}: must be one of ${values.join(', ')}`, undefined, name)
  }
}

export const currency: Reader<string> = (value, name) => {
  const code = text(value, name).toLowerCase()
  if (CURRENCIES.has(code)) return code
  throw invalidRequest(`Invalid currency: ${code}.`, undefined, name)
}

/** An empty value means that the name is taken away. */
export const metadata: Reader<Readonly<Record<string, string>>> = (value, name) => {
  // What the SDK makes of null.
  if (value === '') return {}
  if (typeof value === 'string') throw invalidRequest('Invalid hash', undefined, name)
  if (value.size > METADATA_MAX) throw invalidRequest('Metadata has too many names.', undefined, name)
  for (const [member, content] of value) {
    const path = `${name}[${member}]`
    if (typeof content !== 'string') throw invalidRequest('Metadata values are strings.', undefined, path)
    if (member.length > METADATA_NAME_MAX || content.length > METADATA_VALUE_MAX) {
      throw invalidRequest('The name or the value of metadata is too long.', undefined, path)
    }
  }
  return Object.fromEntries(value) as Record<string, string>
}

/** Names of what is told whole instead of by its id. */
export const expand: Reader<readonly string[]> = (value, name) => {
  if (typeof value === 'string') throw invalidRequest('Invalid array', undefined, name)
  return [...value.values()].map((path) => text(path, name))
}

export interface TimeRange {
  readonly fromS: number
  readonly beforeS: number
}

/** Seconds since the epoch: one, or bounds. */
export const created: Reader<TimeRange> = (value, name) => {
  if (typeof value === 'string') {
    const second = integer(value, name)
    return { fromS: second, beforeS: second + 1 }
  }
  let { fromS, beforeS } = ALWAYS
  for (const [bound, content] of value) {
    const second = integer(content, `${name}[${bound}]`)
    if (bound === 'gte') fromS = Math.max(fromS, second)
    else if (bound === 'gt') fromS = Math.max(fromS, second + 1)
    else if (bound === 'lt') beforeS = Math.min(beforeS, second)
    else if (bound === 'lte') beforeS = Math.min(beforeS, second + 1)
    else throw invalidRequest(`Received unknown parameter: ${name}[${bound}]`, 'parameter_unknown', name)
  }
  return { fromS, beforeS }
}

export const ALWAYS: TimeRange = { fromS: 0, beforeS: Number.POSITIVE_INFINITY }

function describe(value: Parameter): string {
  return typeof value === 'string' ? value.slice(0, 100) : 'an object'
}
