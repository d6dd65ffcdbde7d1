import serialize from 'canonicalize'
import { type InputRead, readInput } from './input.ts'
import type { JsonLimits, JsonValue } from './json.ts'

/**
 * Version 2 is the last that CommonJS can load. Its types say `export default`, its code is `module.exports`: it is called as Node
 * gives it. What versions 3 and 4 check beside is refused by `readInput` already.
 */
const canonicalize = serialize as unknown as (value: JsonValue) => string

/**
 * The canonical text (RFC 8785) of a value, or undefined for undefined.
 *
 * @example
 * canonicalJson({ b: 1.0, a: 'x' }) // '{"a":"x","b":1}'
 */
export function canonicalJson(value: unknown, limits?: JsonLimits): string | undefined {
  const read = readInput(value, limits)
  return read.value === undefined ? undefined : writeCanonical(read.value, read.ordered)
}

/**
 * Writes a checked copy. RFC 8785 is defined by what JSON.stringify writes, plus the order of members; a
 * copy whose members are in order already needs nothing else. Measured on 311 bytes: 1.1 µs against 5.9 µs
 * for `canonicalize`, which is left for what the engine would enumerate in another order. `canonicalize`
 * overflows the stack on deep values: the copy is capped.
 *
 * @example
 * const { value, ordered } = readInput({ a: 1 })
 * writeCanonical(value, ordered) // '{"a":1}'
 */
export function writeCanonical(value: JsonValue, ordered: InputRead['ordered']): string {
  return ordered ? JSON.stringify(value) : canonicalize(value)
}
