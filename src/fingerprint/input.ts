import { OnlyonceError } from '../core/errors.ts'
import { isWellFormed } from '../core/parts.ts'
import { type JsonLimits, type JsonValue, resolveLimits, setMember } from './json.ts'
import { formatPointer } from './pointer.ts'

/**
 * A plain copy of an input, its members sorted by UTF-16 code units.
 *
 * @example
 * const { value, ordered }: InputRead = readInput(input)
 */
export interface InputRead {
  readonly value: JsonValue | undefined
  /** False when JavaScript may enumerate some members in another order than they were set in. */
  readonly ordered: boolean
}

/**
 * Checks that a value given from code is plain JSON and gives a copy of it. Goes by JSON's rules where they
 * lose nothing: toJSON is honoured, undefined members are left out, undefined elements are null. What JSON
 * would silently turn into something else (a Map into {}, NaN into null) is refused.
 *
 * @example
 * checkInput({ at: new Date(0), note: undefined }) // { at: '1970-01-01T00:00:00.000Z' }
 */
export function checkInput(value: unknown, limits?: JsonLimits): JsonValue | undefined {
  return readInput(value, limits).value
}

/**
 * Like `checkInput`, and says whether the copy's members are in canonical order.
 *
 * @example
 * readInput({ b: 1, a: 2 }) // { value: { a: 2, b: 1 }, ordered: true }
 */
export function readInput(value: unknown, limits?: JsonLimits): InputRead {
  return new Reader(resolveLimits(limits)).readRoot(value)
}

class Reader {
  readonly #limits: Required<JsonLimits>
  /** The way to the value that is being read; only its first `depth` entries count. */
  readonly #path: (string | number)[] = []
  readonly #ancestors: object[] = []
  #members = 0
  #ordered = true

  constructor(limits: Required<JsonLimits>) {
    this.#limits = limits
  }

  readRoot(input: unknown): InputRead {
    try {
      return { value: this.#read(input, 0), ordered: this.#ordered }
    } catch (cause) {
      if (cause instanceof OnlyonceError) throw cause
      // A getter, a proxy or a toJSON of the caller's threw.
      throw new OnlyonceError('input_not_serializable', { detail: 'Reading it failed.', cause })
    }
  }

  #read(given: unknown, depth: number): JsonValue | undefined {
    const value = typeof given === 'object' && given !== null ? this.#unwrap(given, depth) : given
    switch (typeof value) {
      case 'string':
        if (!isWellFormed(value)) this.#refuse('holds half of a surrogate pair', depth)
        return value
      case 'number':
        if (!Number.isFinite(value)) this.#refuse('is not a finite number', depth)
        return value + 0
      case 'boolean':
      case 'undefined':
        return value
      case 'object':
        return value === null ? null : this.#readContainer(value, depth)
      default:
        return this.#refuse(`is a ${typeof value}`, depth)
    }
  }

  #unwrap(object: object, depth: number): unknown {
    const { toJSON } = object as { toJSON?: unknown }
    if (typeof toJSON !== 'function') return object
    // JSON writes null for an invalid date, as it does for NaN.
    if (object instanceof Date && Number.isNaN(object.getTime())) this.#refuse('is an invalid date', depth)
    return toJSON.call(object, depth === 0 ? '' : String(this.#path[depth - 1]))
  }

  #readContainer(container: object, depth: number): JsonValue {
    if (this.#ancestors.includes(container)) this.#refuse('is a cycle', depth)
    if (depth >= this.#limits.jsonDepthMax) this.#refuse('is nested too deeply', depth)
    this.#ancestors.push(container)
    const read = Array.isArray(container)
      ? this.#readArray(container, depth)
      : this.#readObject(container as Record<string, unknown>, depth)
    this.#ancestors.pop()
    return read
  }

  #readArray(array: readonly unknown[], depth: number): JsonValue {
    this.#count(array.length, depth)
    const copy: JsonValue[] = []
    for (let i = 0; i < array.length; i++) {
      this.#path[depth] = i
      copy.push(this.#read(array[i], depth + 1) ?? null)
    }
    return copy
  }

  #readObject(object: Record<string, unknown>, depth: number): JsonValue {
    const names = Object.keys(object)
    this.#count(names.length, depth)
    if (!isPlain(object)) this.#checkInstance(object, names.length, depth)
    if (names.length > 1) names.sort()
    const copy: { [name: string]: JsonValue } = {}
    for (const name of names) {
      this.#path[depth] = name
      if (!isWellFormed(name)) this.#refuse('has a name with half of a surrogate pair', depth)
      const value = this.#read(object[name], depth + 1)
      if (value === undefined) continue
      setMember(copy, name, value)
      if (mayBeIndex(name)) this.#ordered = false
    }
    return copy
  }

  /** Instances count by their own members, but one that shows none hides its state: all would look alike. */
  #checkInstance(object: object, names: number, depth: number): void {
    const tag = Object.prototype.toString.call(object)
    if (tag !== '[object Object]' || names === 0) this.#refuse('is an object that JSON cannot show', depth)
  }

  #count(members: number, depth: number): void {
    this.#members += members
    if (this.#members > this.#limits.jsonMembersMax) this.#refuse('has too many members', depth)
  }

  #refuse(problem: string, depth: number): never {
    const where = depth === 0 ? 'The input' : `The value at ${formatPointer(this.#path, depth)}`
    throw new OnlyonceError('input_not_serializable', { detail: `${where} ${problem}.` })
  }
}

/** Object.prototype of any realm, or no prototype at all. */
function isPlain(object: object): boolean {
  const prototype = Object.getPrototypeOf(object)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** Engines enumerate array indices first and by value: "9" before "10", which no sorting of ours can change. */
function mayBeIndex(name: string): boolean {
  const code = name.charCodeAt(0)
  return code >= 0x30 && code <= 0x39
}
