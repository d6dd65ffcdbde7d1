import { createHash } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { encodeParts, isWellFormed } from '../core/parts.ts'
import { findSensitive } from './sensitive.ts'

/** Part of every business key ever made: a change would let every pending retry run again. */
const DOMAIN = 'onlyonce.business_key.v1'
const READABLE_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/

/**
 * A key made from what the action is about, for callers that cannot remember a random key between attempts.
 * Numbers count by their digits, so 7 and '7' give the same key: an identifier that went through JSON or a
 * URL in between must not charge twice.
 *
 * @example
 * businessKey('order', 'ord_19283', 1) // 'order_' and 64 hexadecimal digits
 */
export function businessKey(name: string, ...identifiers: (string | number | bigint)[]): string {
  checkText(name, 'The name')
  if (identifiers.length === 0) refuse('There is no identifier.')
  if (identifiers.length > LIMITS.businessKeyPartsMax) {
    refuse(`At most ${LIMITS.businessKeyPartsMax} identifiers are allowed.`)
  }
  const texts = identifiers.map((identifier, i) => toText(identifier, `Identifier ${i + 1}`))
  const digest = createHash('sha256')
    .update(encodeParts(DOMAIN, name, ...texts))
    .digest('hex')
  const prefix = READABLE_NAME.test(name) && findSensitive(name) === null ? name : 'key'
  return `${prefix}_${digest}`
}

function toText(identifier: unknown, what: string): string {
  if (typeof identifier === 'bigint') return String(identifier)
  if (typeof identifier !== 'number') return checkText(identifier, what)
  if (!Number.isSafeInteger(identifier)) refuse(`${what} is not a safe integer.`)
  return String(identifier)
}

function checkText(text: unknown, what: string): string {
  if (typeof text !== 'string') return refuse(`${what} is neither a string nor a number.`)
  if (text.length === 0) refuse(`${what} is empty.`)
  if (!isWellFormed(text)) refuse(`${what} holds half of a surrogate pair.`)
  return text
}

function refuse(detail: string): never {
  throw new OnlyonceError('business_key_invalid', { detail })
}
