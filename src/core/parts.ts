/**
 * Unambiguous encoding of several values into one text that is hashed as UTF-8.
 *
 * Each part carries its length in front, so no choice of values can look like another split of the same
 * characters. Digests made from this are stored and sent to gateways: the format is stable for ever.
 */

/**
 * Whether a text has no half of a surrogate pair. UTF-8 cannot carry one: encoders put U+FFFD in its place,
 * and two different texts would become the same bytes.
 *
 * @example
 * isWellFormed('\ud83d') // false
 */
export function isWellFormed(text: string): boolean {
  // Native in Node 20 and constant-time for one-byte strings; only the type library of es2023 lacks it.
  return (text as string & { isWellFormed(): boolean }).isWellFormed()
}

/**
 * One part: `<bytes>:<text>`. Ill-formed text and raw bytes travel as hexadecimal behind a letter, which
 * no length starts with, so the three kinds never meet.
 *
 * @example
 * encodePart('abc') // '3:abc'
 */
export function encodePart(part: string | Uint8Array): string {
  if (typeof part !== 'string') return `b${part.length}:${viewBytes(part).toString('hex')}`
  if (isWellFormed(part)) return `${Buffer.byteLength(part)}:${part}`
  return `u${part.length}:${Buffer.from(part, 'utf16le').toString('hex')}`
}

/**
 * Several parts, one after the other. The number of parts is not encoded: where it varies, encode it first.
 *
 * @example
 * encodeParts('ab', 'c') === encodeParts('a', 'bc') // false
 */
export function encodeParts(...parts: readonly (string | Uint8Array)[]): string {
  let text = ''
  for (const part of parts) text += encodePart(part)
  return text
}

function viewBytes(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
