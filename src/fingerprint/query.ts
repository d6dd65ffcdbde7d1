import { isUtf8 } from 'node:buffer'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { encodePart, encodeParts, isWellFormed } from '../core/parts.ts'

/**
 * A query, as it stands in the URL or as decoded pairs.
 *
 * @example
 * const query: Query = 'expand=charge&limit=10'
 */
export type Query = string | readonly (readonly [string, string])[]

/**
 * Encodes a query so that spellings of the same meaning are equal: pairs are sorted by name, the values of
 * one name keep their order, and percent signs and plus signs are decoded as in forms. What is no valid
 * percent-encoding stays as it is, and what is no UTF-8 stays bytes: decoders that put U+FFFD in its
 * place make different queries equal.
 *
 * @example
 * encodeQuery('a=1&b=2') === encodeQuery('b=2&a=1') // true
 */
export function encodeQuery(query: Query | undefined): string {
  if (query === undefined || query.length === 0) return encodePart('0')
  if (typeof query !== 'string' && !Array.isArray(query)) refuse()
  // No server receives such text; it is kept whole, since decoding it would lose what it holds.
  if (typeof query === 'string' && !isWellFormed(query)) return encodeParts('opaque', query)
  const pairs = typeof query === 'string' ? splitQuery(query) : query.map(encodePair)
  if (pairs.length > LIMITS.jsonMembersMax) {
    throw new OnlyonceError('json_too_many_members', { detail: 'See the query.' })
  }
  // Array.prototype.sort is stable. Any order will do, as long as equal names meet.
  pairs.sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0))
  return pairs.reduce((text, { name, value }) => text + name + value, encodePart(String(pairs.length)))
}

interface EncodedPair {
  readonly name: string
  readonly value: string
}

function encodePair(pair: readonly [string, string]): EncodedPair {
  const [name, value] = pair
  if (typeof name !== 'string' || typeof value !== 'string') refuse()
  return { name: encodePart(name), value: encodePart(value) }
}

function splitQuery(query: string): EncodedPair[] {
  const pairs: EncodedPair[] = []
  for (const piece of (query.startsWith('?') ? query.slice(1) : query).split('&')) {
    if (piece === '') continue
    // `a` and `a=` are the same to every server.
    const equals = piece.indexOf('=')
    const name = equals < 0 ? piece : piece.slice(0, equals)
    const value = equals < 0 ? '' : piece.slice(equals + 1)
    pairs.push({ name: encodePart(decode(name)), value: encodePart(decode(value)) })
  }
  return pairs
}

function decode(text: string): string | Uint8Array {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    const bytes = decodeBytes(Buffer.from(spaced))
    return isUtf8(bytes) ? bytes.toString() : bytes
  }
}

function decodeBytes(source: Buffer): Buffer {
  const bytes = Buffer.alloc(source.length)
  let length = 0
  for (let i = 0; i < source.length; i++) {
    const pair = source[i] === 0x25 ? source.toString('latin1', i + 1, i + 3) : ''
    const encoded = /^[0-9A-Fa-f]{2}$/.test(pair)
    bytes[length++] = encoded ? Number.parseInt(pair, 16) : source[i]!
    if (encoded) i += 2
  }
  return bytes.subarray(0, length)
}

function refuse(): never {
  throw new OnlyonceError('option_invalid', { detail: 'A query is text, or a list of pairs of strings.' })
}
