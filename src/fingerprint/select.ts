import { type CompiledFields, type CompiledPointer, covers } from './fields.ts'
import type { JsonValue } from './json.ts'
import { arrayIndex } from './pointer.ts'
import type { InexactNumber } from './strict-json.ts'

/**
 * What is left of a document after its fields were selected.
 *
 * @example
 * const { value, inexact, gaps }: Selected = selectFields(document, fields)
 */
export interface Selected {
  readonly value: JsonValue
  readonly inexact: readonly InexactNumber[]
  /** Array elements that were excluded: null in the value, so that no other element moves into their place. */
  readonly gaps: readonly string[]
}

/**
 * Selects fields. Changes the document, which must be the caller's own.
 *
 * With `include` the value becomes a list of [pointer, containers, value]: a pointer that leads nowhere is
 * absent, which differs from null, and the containers on the way tell /0 of an array from /0 of an object.
 *
 * @example
 * selectFields(parseStrictJson('{"a":1,"b":2}'), compileFields({ exclude: ['/b'] })).value // { a: 1 }
 */
export function selectFields(
  document: Pick<Selected, 'value' | 'inexact'>,
  fields: CompiledFields,
): Selected {
  const { include, exclude } = fields
  const gaps = exclude.filter(({ tokens }) => takeAway(document.value, tokens)).map(({ pointer }) => pointer)
  const counts = (pointer: string) =>
    !covers(exclude, pointer) && (include === null || covers(include, pointer))
  return {
    value: include === null ? document.value : include.flatMap((one) => pick(document.value, one)),
    inexact: document.inexact.filter(({ pointer }) => counts(pointer)),
    gaps: include === null ? gaps : gaps.filter((pointer) => covers(include, pointer)),
  }
}

/** Takes one field away; true when that left a gap in an array. */
function takeAway(root: JsonValue, tokens: readonly string[]): boolean {
  const parent = tokens.slice(0, -1).reduce<JsonValue | undefined>(step, root)
  const last = tokens.at(-1)!
  if (parent === undefined || step(parent, last) === undefined) return false
  if (Array.isArray(parent)) {
    parent[arrayIndex(last)] = null
    return true
  }
  delete (parent as Record<string, JsonValue>)[last]
  return false
}

function pick(root: JsonValue, { pointer, tokens }: CompiledPointer): JsonValue[] {
  let containers = ''
  let value: JsonValue | undefined = root
  for (const token of tokens) {
    containers += Array.isArray(value) ? 'a' : 'o'
    value = step(value, token)
    if (value === undefined) return []
  }
  return [[pointer, containers, value]]
}

function step(value: JsonValue | undefined, token: string): JsonValue | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return value[arrayIndex(token)]
  return Object.hasOwn(value, token) ? value[token] : undefined
}
