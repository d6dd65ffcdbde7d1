import { type BareItem, type Parameters, parseItem } from 'structured-headers'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { checkKey, refuseUnprintable } from './check.ts'
import type { KeyRules } from './rules.ts'

/** The longest key, every character escaped, between quotes. Anything longer is refused unread. */
const HEADER_LENGTH_MAX = 2 * LIMITS.keyLengthMax + 2

/**
 * Reads the key from the value of its header. A structured-field string (`"abc"`) and the bare form (`abc`)
 * are the same key. Bare keys are plain printable ASCII and no structured-field tokens: a UUID may start
 * with a digit, which a token may not.
 *
 * @example
 * parseKeyHeader('"8e03978e-40d5-43e8-bc93-6894a57f9324"') // 8e03978e-40d5-43e8-bc93-6894a57f9324
 */
export function parseKeyHeader(
  value: string | readonly string[] | null | undefined,
  rules?: KeyRules,
): string {
  const raw = takeOne(value)
  const text = trimWhitespace(raw)
  if (text.length === 0) throw new OnlyonceError(raw.length === 0 ? 'key_empty' : 'key_blank')
  if (text.length > HEADER_LENGTH_MAX) throw new OnlyonceError('key_too_long')
  refuseUnprintable(text)
  const key = text.startsWith('"') ? readQuoted(text) : readBare(text)
  return checkKey(key, rules)
}

function takeOne(value: string | readonly string[] | null | undefined): string {
  if (value === undefined || value === null) throw new OnlyonceError('key_missing')
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) throw new OnlyonceError('key_not_a_string')
  if (value.length > 1) throw new OnlyonceError('key_repeated')
  if (value.length === 0) throw new OnlyonceError('key_missing')
  return takeOne(value[0])
}

function readQuoted(text: string): string {
  let item: [BareItem, Parameters]
  try {
    item = parseItem(text)
  } catch {
    refuseOutsideQuotes(text)
    throw new OnlyonceError('key_malformed')
  }
  if (item[1].size > 0) throw new OnlyonceError('key_parameters')
  if (typeof item[0] !== 'string') throw new OnlyonceError('key_malformed')
  return item[0]
}

function readBare(text: string): string {
  refuseOutsideQuotes(text)
  if (text.includes('"')) throw new OnlyonceError('key_malformed')
  if (text.includes(' ')) throw new OnlyonceError('key_space')
  return text
}

/** Servers join repeated headers with a comma: outside quotes it always means that there are several keys. */
function refuseOutsideQuotes(text: string): void {
  let quoted = false
  let semicolon = false
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (quoted && char === '\\') i++
    else if (char === '"') quoted = !quoted
    else if (!quoted && char === ',') throw new OnlyonceError('key_list')
    else if (!quoted && char === ';') semicolon = true
  }
  if (semicolon) throw new OnlyonceError('key_parameters')
}

/** RFC 9110's optional whitespace, and nothing that String.prototype.trim would take besides. */
function trimWhitespace(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isWhitespace(text.charCodeAt(start))) start++
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09
}
