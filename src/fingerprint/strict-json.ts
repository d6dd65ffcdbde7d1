import { isUtf8 } from 'node:buffer'
import { OnlyonceError, type PlainCode } from '../core/errors.ts'
import { isWellFormed } from '../core/parts.ts'
import { isExact, normalizeDecimal } from './decimal.ts'
import { type JsonLimits, type JsonValue, resolveLimits, setMember } from './json.ts'
import { formatPointer } from './pointer.ts'
import { readNumberEnd, readString, type StringRead } from './scan.ts'

/**
 * A number that no double holds as it was written.
 *
 * @example
 * const number: InexactNumber = { pointer: '/amount', decimal: '9007199254740993e0' }
 */
export interface InexactNumber {
  readonly pointer: string
  readonly decimal: string
}

/**
 * A JSON text that was read without losing anything: numbers that JavaScript would round are null in the
 * value and stand in full in the list.
 *
 * @example
 * const { value, inexact }: StrictJson = parseStrictJson(body)
 */
export interface StrictJson {
  readonly value: JsonValue
  readonly inexact: InexactNumber[]
}

/**
 * Reads JSON strictly by RFC 8259. JSON.parse keeps the last of two members with one name and rounds large
 * numbers, so it makes different requests look the same; here the first is refused and the second is kept.
 *
 * @example
 * parseStrictJson('{"amount":9007199254740993}')
 * // { value: { amount: null }, inexact: [{ pointer: '/amount', decimal: '9007199254740993e0' }] }
 */
export function parseStrictJson(source: Uint8Array | string, limits?: JsonLimits): StrictJson {
  const resolved = resolveLimits(limits)
  return new Reader(decode(source, resolved.bodySizeMaxBytes), resolved).readDocument()
}

function decode(source: Uint8Array | string, sizeMaxBytes: number): string {
  if (typeof source === 'string') {
    // No text has fewer bytes than characters: the first test spares counting what is too large anyway.
    if (source.length > sizeMaxBytes || Buffer.byteLength(source) > sizeMaxBytes) refuse('body_too_large')
    if (!isWellFormed(source)) refuse('json_lone_surrogate')
    return source
  }
  if (source.byteLength > sizeMaxBytes) refuse('body_too_large')
  if (!isUtf8(source)) refuse('json_not_utf8')
  return Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString('utf8')
}

class Reader {
  readonly #text: string
  readonly #limits: Required<JsonLimits>
  readonly #inexact: InexactNumber[] = []
  /** The way to the value that is being read; only its first `depth` entries count. */
  readonly #path: (string | number)[] = []
  readonly #read: StringRead = { value: '', end: 0 }
  #at = 0
  #members = 0

  constructor(text: string, limits: Required<JsonLimits>) {
    this.#text = text
    this.#limits = limits
  }

  readDocument(): StrictJson {
    if (this.#text.charCodeAt(0) === 0xfeff) refuse('json_malformed', 'It starts with a byte order mark.')
    const value = this.#readValue(0)
    this.#skipWhitespace()
    if (this.#at < this.#text.length) this.#fail()
    return { value, inexact: this.#inexact }
  }

  #readValue(depth: number): JsonValue {
    const code = this.#skipWhitespace()
    if (code === 0x22) return this.#readString()
    if (code === 0x7b) return this.#readObject(this.#enter(depth))
    if (code === 0x5b) return this.#readArray(this.#enter(depth))
    if (code === 0x74) return this.#readLiteral('true', true)
    if (code === 0x66) return this.#readLiteral('false', false)
    if (code === 0x6e) return this.#readLiteral('null', null)
    return this.#readNumber(depth)
  }

  #enter(depth: number): number {
    if (depth >= this.#limits.jsonDepthMax) refuse('json_too_deep')
    this.#at++
    return depth + 1
  }

  #readObject(depth: number): JsonValue {
    const object: { [name: string]: JsonValue } = {}
    if (this.#skipWhitespace() === 0x7d) return this.#leave(object)
    for (;;) {
      if (this.#skipWhitespace() !== 0x22) this.#fail()
      const name = this.#readString()
      if (Object.hasOwn(object, name)) this.#fail('json_duplicate_member')
      if (this.#skipWhitespace() !== 0x3a) this.#fail()
      this.#at++
      this.#count()
      this.#path[depth - 1] = name
      setMember(object, name, this.#readValue(depth))
      const code = this.#skipWhitespace()
      if (code === 0x7d) return this.#leave(object)
      if (code !== 0x2c) this.#fail()
      this.#at++
    }
  }

  #readArray(depth: number): JsonValue {
    const array: JsonValue[] = []
    if (this.#skipWhitespace() === 0x5d) return this.#leave(array)
    for (;;) {
      this.#count()
      this.#path[depth - 1] = array.length
      array.push(this.#readValue(depth))
      const code = this.#skipWhitespace()
      if (code === 0x5d) return this.#leave(array)
      if (code !== 0x2c) this.#fail()
      this.#at++
    }
  }

  #leave<T>(container: T): T {
    this.#at++
    return container
  }

  #count(): void {
    if (++this.#members > this.#limits.jsonMembersMax) refuse('json_too_many_members')
  }

  #readString(): string {
    const problem = readString(this.#text, this.#at, this.#read)
    this.#at = this.#read.end
    if (problem !== null) this.#fail(problem)
    return this.#read.value
  }

  #readNumber(depth: number): JsonValue {
    const end = readNumberEnd(this.#text, this.#at)
    if (end < 0) this.#fail()
    const lexeme = this.#text.slice(this.#at, end)
    this.#at = end
    const value = Number(lexeme)
    // Adding 0 turns -0 into 0: they are the same number, and JSON has no other.
    if (isExact(lexeme, value)) return value + 0
    this.#inexact.push({ pointer: formatPointer(this.#path, depth), decimal: normalizeDecimal(lexeme) })
    return null
  }

  #readLiteral<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#fail()
    this.#at += word.length
    return value
  }

  /** Moves to the next character that is not whitespace and gives its code, NaN at the end. */
  #skipWhitespace(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code
      this.#at++
    }
  }

  #fail(code: PlainCode = 'json_malformed'): never {
    refuse(code, `See character ${this.#at}.`)
  }
}

function refuse(code: PlainCode, detail?: string): never {
  throw new OnlyonceError(code, detail === undefined ? {} : { detail })
}
