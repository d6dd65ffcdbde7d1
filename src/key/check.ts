import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { looksIssued, refuseMalformedIssued } from './issued.ts'
import { KEY_RULES_DEFAULT, type KeyRules, keyRules } from './rules.ts'
import { findSensitive } from './sensitive.ts'

/**
 * Checks a key that comes from code and gives it back. Any printable ASCII is allowed, commas, semicolons
 * and quotes included: header syntax plays no part here. Of an issued key only the form is checked; whom it was
 * issued to is known where account and operation are.
 *
 * @example
 * checkKey('8e03978e-40d5-43e8-bc93-6894a57f9324')
 */
export function checkKey(key: unknown, rules: KeyRules = KEY_RULES_DEFAULT): string {
  const { lengthMin, allowSensitive, issued } = keyRules(rules)
  if (typeof key !== 'string') throw new OnlyonceError('key_not_a_string')
  if (key.length === 0) throw new OnlyonceError('key_empty')
  if (key.length > LIMITS.keyLengthMax) throw new OnlyonceError('key_too_long')
  refuseUnprintable(key)
  if (isBlank(key)) throw new OnlyonceError('key_blank')
  if (looksIssued(key)) {
    // Its looks are chance: random digits are no card number, and it is as long as it was made.
    refuseMalformedIssued(key)
    return key
  }
  if (issued === 'required') throw new OnlyonceError('key_not_issued')
  if (key.length < lengthMin) {
    throw new OnlyonceError('key_too_short', { detail: `At least ${lengthMin} characters are needed.` })
  }
  if (!allowSensitive) {
    const code = findSensitive(key)
    if (code !== null) throw new OnlyonceError(code)
  }
  return key
}

/**
 * Refuses all that is not printable ASCII (0x20 to 0x7e), by the first character that is not.
 *
 * @example
 * refuseUnprintable('abc\n') // throws key_control_character
 */
export function refuseUnprintable(text: string): void {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0x7f) throw new OnlyonceError('key_not_ascii')
    if (code < 0x20 || code === 0x7f) throw new OnlyonceError('key_control_character')
  }
}

function isBlank(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) !== 0x20) return false
  }
  return true
}
