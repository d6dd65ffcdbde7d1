import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findSensitive } from './sensitive.ts'

describe('findSensitive', () => {
  it.each([
    ['4242424242424242', 'key_card_number'],
    ['4242 4242 4242 4242', 'key_card_number'],
    [' 4242-4242-4242-4242 ', 'key_card_number'],
    ['378282246310005', 'key_card_number'],
    ['charge-4242424242424242', 'key_card_number'],
    ['card:5555555555554444:2025', 'key_card_number'],
    ['order-4242-4242-4242-4242', 'key_card_number'],
    ['order_4242_4242_4242_4242_7', 'key_card_number'],
    ['pay 3782 822463 10005 now', 'key_card_number'],
    ['joe@example.com', 'key_email'],
    ['order-joe.doe+1@mail.example.co.uk-7', 'key_email'],
    ['user:joe@example.com:order:7', 'key_email'],
    ['+14155550123', 'key_phone'],
    ['+1 (415) 555-0123', 'key_phone'],
    ['+49 30 901820', 'key_phone'],
    ['415-555-0123', 'key_phone'],
    ['(415) 555-0123', 'key_phone'],
    ['(415)555-0123', 'key_phone'],
    ['1-415-555-0123', 'key_phone'],
    ['415.555.0123', 'key_phone'],
    ['4155550123', 'key_phone'],
    ['14155550123', 'key_phone'],
    ['078-05-1120', 'key_social_security'],
    ['078 05 1120', 'key_social_security'],
    ['078051120', 'key_social_security'],
  ])('takes %j for %s', (key, expected) => expect(findSensitive(key)).toBe(expected))

  it.each([
    '4242424242424241',
    'order-1700000000006',
    'order_1700000000000_4242',
    'ord-4155550123',
    'payments@2.0',
    'payments.create@2',
    'a@b',
    '+12345',
    '+1234567890123456',
    '078-05 1120',
    '078-051120',
    '12345678',
    '123456789012',
    '01ARZ3NDEKTSV4RRFFQ69G5FAV',
    'V1StGXR8_Z5jdHi6B-myT',
    '20240115-000001-eur',
  ])('lets %j pass', (key) => expect(findSensitive(key)).toBe(null))

  it('never refuses a UUID, however it is written', () => {
    fc.assert(
      fc.property(
        fc.uuid({ version: [1, 4, 7] }),
        fc.constantFrom('', 'order_', 'urn:uuid:'),
        (uuid, prefix) => {
          expect(findSensitive(prefix + uuid)).toBe(null)
          expect(findSensitive(prefix + uuid.toUpperCase())).toBe(null)
          expect(findSensitive(prefix + uuid.replaceAll('-', ''))).toBe(null)
        },
      ),
      { numRuns: 5_000 },
    )
  })

  it('never refuses a UUID made of digits alone', () => {
    const digits = fc.array(fc.constantFrom(...'0123456789'), { minLength: 32, maxLength: 32 })
    fc.assert(
      fc.property(digits, (list) => {
        const hex = list.join('')
        const groups = [
          hex.slice(0, 8),
          hex.slice(8, 12),
          hex.slice(12, 16),
          hex.slice(16, 20),
          hex.slice(20),
        ]
        expect(findSensitive(groups.join('-'))).toBe(null)
        expect(findSensitive(hex)).toBe(null)
      }),
      { numRuns: 5_000 },
    )
  })

  it('never refuses a ULID, a digest or a millisecond timestamp behind a name', () => {
    fc.assert(
      fc.property(fc.ulid(), fc.integer({ min: 1e12, max: 2e12 }), fc.string(), (ulid, atMs, seed) => {
        expect(findSensitive(ulid)).toBe(null)
        expect(findSensitive(`order-${atMs}`)).toBe(null)
        expect(findSensitive(`invoice:${atMs}:7`)).toBe(null)
        expect(findSensitive(createHash('sha256').update(seed).digest('hex'))).toBe(null)
        expect(findSensitive(createHash('sha256').update(seed).digest('base64url').slice(0, 21))).toBe(null)
      }),
      { numRuns: 2_000 },
    )
  })
})
