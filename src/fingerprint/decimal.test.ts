import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isExact, normalizeDecimal } from './decimal.ts'

/** An oracle in whole numbers: numerator and power of ten, brought to one power and compared. */
function isSameNumber(one: string, other: string): boolean {
  const read = (lexeme: string) => {
    const [mantissa = '', exponent = '0'] = lexeme.toLowerCase().split('e')
    const [whole = '', fraction = ''] = mantissa.split('.')
    return {
      units: BigInt(whole.replace('-', '') + fraction) * (lexeme.startsWith('-') ? -1n : 1n),
      power: BigInt(exponent) - BigInt(fraction.length),
    }
  }
  const a = read(one)
  const b = read(other)
  const shift = a.power - b.power
  return shift >= 0n ? a.units * 10n ** shift === b.units : a.units === b.units * 10n ** -shift
}

const few = (chars: string, min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...chars), minLength: min, maxLength: max })
const whole = fc.oneof(
  fc.constant('0'),
  fc.tuple(few('1259', 1, 1), few('0019', 0, 4)).map((parts) => parts.join('')),
)
const fraction = fc.oneof(
  fc.constant(''),
  few('0015', 1, 4).map((digits) => `.${digits}`),
)
const exponent = fc.oneof(
  fc.constant(''),
  fc.tuple(fc.constantFrom('e', 'E', 'e+', 'e-'), few('0012', 1, 2)).map((parts) => parts.join('')),
)
const lexemes = fc.tuple(fc.constantFrom('', '-'), whole, fraction, exponent).map((parts) => parts.join(''))

describe('normalizeDecimal', () => {
  it.each([
    ['0', '0'],
    ['-0', '0'],
    ['0.000e99999999999999999999999', '0'],
    ['15', '15e0'],
    ['15.0', '15e0'],
    ['1.50e1', '15e0'],
    ['150E-1', '15e0'],
    ['-0.0010', '-1e-3'],
    ['12345678901234567890', '1234567890123456789e1'],
    ['1.234567890123456789e19', '1234567890123456789e1'],
    ['1e+000005', '1e5'],
    ['10e-0', '1e1'],
    ['1e999999999999', '1e999999999999'],
    ['1.5e1000000000000000', '15e999999999999999'],
    ['1.5e10000000000000000000000', '15e9999999999999999999999'],
    ['10e9999999999999999999999', '1e10000000000000000000000'],
    ['10e99999', '1e100000'],
    ['1.5e-9999999999999999999999', '15e-10000000000000000000000'],
    ['10e-10000000000000000000000', '1e-9999999999999999999999'],
  ])('%s is %s', (lexeme, decimal) => expect(normalizeDecimal(lexeme)).toBe(decimal))

  it('is equal exactly for numbers that are equal', () => {
    fc.assert(
      fc.property(lexemes, lexemes, (one, other) => {
        expect(normalizeDecimal(one) === normalizeDecimal(other)).toBe(isSameNumber(one, other))
      }),
      { numRuns: 20_000 },
    )
  })

  it('is equal for all spellings of one number', () => {
    fc.assert(
      fc.property(lexemes, fc.nat(30), (lexeme, shift) => {
        const [mantissa = '', power = '0'] = lexeme.toLowerCase().split('e')
        const dotted = mantissa.includes('.') ? mantissa : `${mantissa}.`
        const respelled = `${dotted}${'0'.repeat(shift)}`.replace(/\.$/, '')
        expect(normalizeDecimal(`${respelled}e${power}`)).toBe(normalizeDecimal(lexeme))
      }),
    )
  })

  it('shifts exponents of any length as whole numbers do', () => {
    const long = fc.tuple(few('1290', 1, 1), few('0099', 15, 40)).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.constantFrom('', '-'), long, fc.nat(20), fc.nat(20), (sign, digits, zeros, places) => {
        const lexeme = `${places === 0 ? '1' : `0.${'0'.repeat(places - 1)}1`}e${sign}${digits}`
        expect(normalizeDecimal(lexeme)).toBe(`1e${BigInt(sign + digits) - BigInt(places)}`)
        expect(normalizeDecimal(`1${'0'.repeat(zeros)}e${sign}${digits}`)).toBe(
          `1e${BigInt(sign + digits) + BigInt(zeros)}`,
        )
      }),
      { numRuns: 2_000 },
    )
  })

  it('takes no time over an exponent of a million digits', () => {
    const start = performance.now()
    for (const digits of ['9'.repeat(1_000_000), `1${'0'.repeat(1_000_000)}`]) {
      for (const lexeme of [`1.5e${digits}`, `10e${digits}`, `1.5e-${digits}`, `10e-${digits}`])
        normalizeDecimal(lexeme)
    }
    expect(performance.now() - start).toBeLessThan(10_000)
  })
})

describe('isExact', () => {
  it.each([
    '0',
    '-0',
    '1',
    '0.1',
    '12.50',
    '1e22',
    '1e23',
    '9007199254740992',
    '5e-324',
    '1.7976931348623157e308',
    '100000000000000000000',
  ])('a double holds %s', (lexeme) => expect(isExact(lexeme, Number(lexeme))).toBe(true))

  it.each([
    '9007199254740993',
    '12345678901234567890',
    '1e400',
    '-1e400',
    '1e-400',
    '4.9e-324',
    '0.1000000000000000055511151231257827',
    '333333333.33333329',
    '1e999999999999',
  ])('no double holds %s', (lexeme) => expect(isExact(lexeme, Number(lexeme))).toBe(false))

  it('holds for whatever JavaScript writes', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) =>
        isExact(String(value), value),
      ),
    )
  })

  it('holds for every decimal of fifteen digits, which the short cut relies on', () => {
    fc.assert(
      fc.property(few('0123456789', 1, 13), few('0123456789', 1, 13), (whole, fraction) => {
        const lexeme = `${BigInt(whole)}.${fraction}`.slice(0, 15).replace(/\.$/, '')
        expect(normalizeDecimal(String(Number(lexeme)))).toBe(normalizeDecimal(lexeme))
      }),
      { numRuns: 5_000 },
    )
  })
})
