import type { ErrorCode } from '../errors.ts'
import { isCardNumber } from './card.ts'

/**
 * Keys are logged, stored in the clear and shown to operators, so personal data has no place in them.
 *
 * Most rules look at the key as a whole: `order-1700000000000` holds a run of digits that passes the Luhn
 * check one time in ten. Inside a longer key only what carries an issuer's prefix and length counts as a card.
 */
type SensitiveCode = Extract<ErrorCode, 'key_card_number' | 'key_email' | 'key_phone' | 'key_social_security'>

/** Visa, Mastercard, Discover and JCB with 16 digits, American Express with 15, standing free. */
const CARD_INSIDE = /(?<![A-Za-z0-9])(?:(?:4\d|5[1-5]|2[2-7]|6[045]|35)\d{14}|3[47]\d{13})(?![A-Za-z0-9])/g
const EMAIL = /[A-Za-z0-9._%+"-]@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}/
const PHONE_INTERNATIONAL = /^\+[\d ().-]+$/
const PHONE_NATIONAL = /^(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}$/
const PHONE_BARE = /^\d{10,11}$/
const SOCIAL_SECURITY = /^(?:\d{3}([- ])\d{2}\1\d{4}|\d{9})$/

/**
 * The code of the refusal that a key earns by what it looks like, or null.
 *
 * @example
 * findSensitive('joe@example.com') // 'key_email'
 */
export function findSensitive(key: string): SensitiveCode | null {
  const text = key.trim()
  if (isCardNumber(text) || holdsCardNumber(text)) return 'key_card_number'
  if (EMAIL.test(text)) return 'key_email'
  if (isPhone(text)) return 'key_phone'
  if (SOCIAL_SECURITY.test(text)) return 'key_social_security'
  return null
}

function holdsCardNumber(text: string): boolean {
  return text.match(CARD_INSIDE)?.some(isCardNumber) ?? false
}

function isPhone(text: string): boolean {
  if (PHONE_BARE.test(text) || PHONE_NATIONAL.test(text)) return true
  if (!PHONE_INTERNATIONAL.test(text)) return false
  const digits = text.replace(/\D/g, '').length
  return digits >= 7 && digits <= 15
}
