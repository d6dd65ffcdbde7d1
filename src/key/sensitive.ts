import type { ErrorCode } from '../core/errors.ts'
import { isCardNumber } from './card.ts'
import { holdsCardNumber } from './card-inside.ts'

/**
 * Keys are logged, stored in the clear and shown to operators, so personal data has no place in them.
 *
 * Most rules look at the key as a whole: `order-1700000000000` holds a run of digits that passes the Luhn
 * check one time in ten. Inside a longer key only what carries an issuer's prefix and length counts as a card.
 */
type SensitiveCode = Extract<ErrorCode, 'key_card_number' | 'key_email' | 'key_phone' | 'key_social_security'>

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

function isPhone(text: string): boolean {
  if (PHONE_BARE.test(text) || PHONE_NATIONAL.test(text)) return true
  if (!PHONE_INTERNATIONAL.test(text)) return false
  const digits = text.replace(/\D/g, '').length
  return digits >= 7 && digits <= 15
}
