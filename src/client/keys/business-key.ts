import { sha256 } from './sha256.ts'

/** The same as in the server: a change would let every pending retry run again. */
const DOMAIN = 'onlyonce.business_key.v1'
const PARTS_MAX = 16

/**
 * A key made from what the action is about: the same order gives the same key, after a reload, on another device and on the server, where
 * `businessKey` of `onlyonce` makes the same. Numbers count by their digits.
 *
 * @example
 * await pay('/v1/payments', { method: 'POST', body, key: businessKey('order', 'ord_19283', 1) })
 */
export function businessKey(name: string, ...identifiers: (string | number | bigint)[]): string {
  if (identifiers.length === 0 || identifiers.length > PARTS_MAX) {
    throw new TypeError(`A business key needs 1 to ${PARTS_MAX} identifiers.`)
  }
  // The server leaves a name out of the key if it holds a card number. A name needs no such digits.
  if (typeof name === 'string' && name.replace(/\D/g, '').length > 12) {
    throw new TypeError('The name of a business key is a word. Put numbers behind it.')
  }
  const text = [DOMAIN, name, ...identifiers].map(partOf).join('')
  return `${/^[A-Za-z][A-Za-z0-9_-]{0,31}$/.test(name) ? name : 'key'}_${sha256(text)}`
}

/** A part with its length in bytes in front, so that no two lists of parts look the same. */
function partOf(part: unknown): string {
  const plain = typeof part === 'bigint' || Number.isSafeInteger(part) ? String(part) : part
  if (typeof plain !== 'string' || plain === '' || /\p{Surrogate}/u.test(plain)) {
    throw new TypeError('A business key is made of non-empty strings, safe integers or bigints.')
  }
  return `${new TextEncoder().encode(plain).length}:${plain}`
}
