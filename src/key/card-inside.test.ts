import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holdsCardNumber } from './card-inside.ts'

const CARDS = [
  '4242424242424242',
  '4222222222222',
  '5555555555554444',
  '2223003122003222',
  '378282246310005',
  '30569309025904',
  '36227206271667',
  '3566002020360505',
  '6011111111111117',
  '6200000000000005',
  '6759649826438453',
]

describe('a card number inside text', () => {
  it.each([
    ...CARDS,
    ...CARDS.map((card) => `paid with ${card}, thanks`),
    ...CARDS.map((card) => `card${card}x`),
    ...['-', ' ', '.', '_', '/', ' - ', '\n'].map((mark) => ['4242', '4242', '4242', '4242'].join(mark)),
    '3782 822463 10005',
    '3056 930902 5904',
    '6011-1111-1111-1117',
    '4 2 4 2 4 2 4 2 4 2 4 2 4 2 4 2',
    '42 42 42 42 42 42 42 42',
    '4242 424242424242',
    '42424242-42424242',
    'order-4242-4242-4242-4242-7',
    'on 2026-01-15 4242 4242 4242 4242 failed',
    '４２４２ ４２４２ ４２４２ ４２４２',
    '4242\u00a04242\u00a04242\u00a04242',
    '4242\u20134242\u20134242\u20134242',
    '4242\u200b4242\u200b4242\u200b4242',
    '٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢',
    '४२४२ ४२४२ ४२४२ ४२४२',
    '߄߂߄߂߄߂߄߂߄߂߄߂߄߂߄߂',
    '৫৫৫৫৫৫৫৫৫৫৫৫৪৪৪৪',
    '𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐',
    '4️⃣2️⃣4️⃣2️⃣ 4️⃣2️⃣4️⃣2️⃣ 4️⃣2️⃣4️⃣2️⃣ 4️⃣2️⃣4️⃣2️⃣',
    ...[',', ', ', ':', ';', '*', ' * ', '|', '+', '·', ')(', '][', "'", '"', '","'].map((mark) =>
      ['4242', '4242', '4242', '4242'].join(mark),
    ),
    '(3782)(822463)(10005)',
    '{"pan":"4242424242424242"}',
    'https://shop.example/hooks?pan=4242424242424242&a=b',
    'tel:12 4242424242424242',
    '+4242424242424242',
  ])('is found: %j', (text) => expect(holdsCardNumber(text)).toBe(true))

  it.each([
    '',
    '4242424242424241',
    '424242424242',
    '42424242424242424242',
    '1700000000006',
    '1850000000000000001',
    '4500012345-2026-11-15',
    '4111-1111',
    '2026-11-15 12:30:45.123456',
    '+49 30 901820 4242',
    'a1b4242424242424242',
    '4242424242424242b7',
    'order 4242, 4242 pieces, 42424242 euro',
    'DE89370400440532013000',
    '+4222222222222',
    'call +378282246310005',
    '4,2,4,2,4,2,4,2,4,2,4,2,4,2,4,2',
    '42:42:42:42:42:42:42:42',
    '42424242,42424242',
    '4242,4242 and 4242, 4242',
    '४२४२४२४२४२४२४२४१',
  ])('is not seen in %j', (text) => expect(holdsCardNumber(text)).toBe(false))

  it('is never seen in a UUID, a digest, a ULID or a time in milliseconds', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.ulid(), fc.integer({ min: 1e12, max: 2e12 }), (uuid, ulid, atMs) => {
        const digest = createHash('sha256').update(uuid).digest('hex')
        for (const text of [uuid, `pay_${uuid.replaceAll('-', '')}`, ulid, `${atMs}`, digest]) {
          expect(holdsCardNumber(text), text).toBe(false)
        }
      }),
      { numRuns: 5_000 },
    )
    expect(holdsCardNumber('42424242-4242-4242-8242-424242424242')).toBe(false)
    expect(holdsCardNumber('pay_ffffffe6000910009650380adaaaaaaa')).toBe(false)
    expect(holdsCardNumber(`${'f'.repeat(31)} 4242424242424242`)).toBe(true)
  })

  it.each([
    '4',
    '4243,',
    '(4243)',
    '4 ',
    '43-',
    '4243 ',
    '- ',
    '4...',
    'a4',
    '4a',
    'a',
    '4242 4242 4242 4241a',
  ])('is looked for in time in proportion to the text: %s', (text) => {
    const timed = (repeats: number) => {
      const long = `${text.repeat(repeats)}é`
      const times = Array.from({ length: 5 }, () => {
        // Time of the processor, not of the clock: other processes may have it meanwhile. Only the sum of both kinds is exact.
        const start = process.cpuUsage()
        expect(holdsCardNumber(long)).toBe(false)
        const { user, system } = process.cpuUsage(start)
        return user + system
      })
      return Math.min(...times)
    }
    timed(500)
    // Sixteen times the text: sixteen times as long, or 256 times where it is not in proportion.
    expect(timed(8_000) / timed(500)).toBeLessThan(80)
  })
})
