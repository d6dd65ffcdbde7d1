import { isWellFormed } from '../core/parts.ts'

/**
 * Where a string read ended, and what it said; reused between strings because they are most of a body.
 *
 * @example
 * const read: StringRead = { value: '', end: 0 }
 */
export interface StringRead {
  value: string
  end: number
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

/**
 * Reads the JSON string whose opening quote stands at `start`. Gives null, or what is wrong at `into.end`.
 *
 * @example
 * readString('"abc"', 0, read) // null, and read is { value: 'abc', end: 5 }
 */
export function readString(
  text: string,
  start: number,
  into: StringRead,
): 'json_malformed' | 'json_lone_surrogate' | null {
  let value = ''
  let copied = start + 1
  let unicode = false
  for (let i = copied; ; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) {
      into.value = copied === start + 1 ? text.slice(copied, i) : value + text.slice(copied, i)
      into.end = i + 1
      // The text itself is well-formed, so only escapes can leave half a pair.
      return unicode && !isWellFormed(into.value) ? 'json_lone_surrogate' : null
    }
    into.end = i
    // NaN, past the end, is not at least a space either.
    if (!(code >= 0x20)) return 'json_malformed'
    if (code !== 0x5c) continue
    const kind = text[i + 1]
    const char = kind === 'u' ? readHex(text, i + 2) : ESCAPES[kind ?? '']
    if (char === undefined) return 'json_malformed'
    if (kind === 'u') unicode = true
    value += text.slice(copied, i) + char
    i += kind === 'u' ? 5 : 1
    copied = i + 1
  }
}

function readHex(text: string, start: number): string | undefined {
  let code = 0
  for (let i = start; i < start + 4; i++) {
    const char = text.charCodeAt(i)
    const letter = char | 0x20
    if (char >= 0x30 && char <= 0x39) code = code * 16 + char - 0x30
    else if (letter >= 0x61 && letter <= 0x66) code = code * 16 + letter - 0x57
    else return undefined
  }
  return String.fromCharCode(code)
}

/**
 * Where the JSON number that starts here ends, or -1 when none does.
 *
 * @example
 * readNumberEnd('-1.5e3,', 0) // 6
 */
export function readNumberEnd(text: string, start: number): number {
  let at = text.charCodeAt(start) === 0x2d ? start + 1 : start
  at = text.charCodeAt(at) === 0x30 ? at + 1 : skipDigits(text, at)
  if (at >= 0 && text.charCodeAt(at) === 0x2e) at = skipDigits(text, at + 1)
  if (at >= 0 && (text.charCodeAt(at) | 0x20) === 0x65) {
    const sign = text.charCodeAt(at + 1)
    at = skipDigits(text, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
  }
  return at
}

/** The end of the digits that start here, or -1 when there is none. */
function skipDigits(text: string, start: number): number {
  let at = start
  for (let code = text.charCodeAt(at); code >= 0x30 && code <= 0x39; code = text.charCodeAt(at)) at++
  return at === start ? -1 : at
}
