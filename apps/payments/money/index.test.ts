import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Refused } from '../problems.ts'
import {
  AMOUNT_MAX,
  CURRENCIES,
  decimalsOf,
  formatMoney,
  isAmount,
  parseAmount,
  parseCurrency,
  parseMoney,
} from './index.ts'

const anyCurrency = fc.constantFrom(...CURRENCIES)

/** What a call is refused with. */
function refusalOf(call: () => unknown): Refused {
  try {
    call()
  } catch (error) {
    if (error instanceof Refused) return error
    throw error
  }
  throw new Error('it was not refused')
}

describe('currencies', () => {
  it.each([
    ['JPY', 0],
    ['KRW', 0],
    ['VND', 0],
    ['XOF', 0],
    ['EUR', 2],
    ['USD', 2],
    ['KWD', 3],
    ['BHD', 3],
    ['TND', 3],
    // Intl says 0 of each of them.
    ['HUF', 2],
    ['COP', 2],
    ['IDR', 2],
    ['PKR', 2],
    // And of this one, which has three.
    ['IQD', 3],
  ])('%s has %i decimals', (currency, decimals) => {
    expect(CURRENCIES.has(currency)).toBe(true)
    expect(decimalsOf(currency)).toBe(decimals)
  })

  it('have no more decimals for the platform than for us: less is what is used in shops', () => {
    const decimalsOfIntl = (currency: string) =>
      new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits!
    expect([...CURRENCIES].filter((currency) => decimalsOfIntl(currency) > decimalsOf(currency))).toEqual([])
  })

  it.each(['XXX', 'XTS', 'XAU', 'XDR', 'HRK', 'BGN', 'DEM', 'ISK', 'MGA', 'UGX', 'ABC', 'BTC'])(
    '%s is refused',
    (code) => {
      const { code: problem, details } = refusalOf(() => parseCurrency(code))
      expect(problem).toBe('invalid_request')
      expect(details.field).toBe('currency')
      expect(details.detail).toContain(code)
    },
  )

  it('are read in any letters, and nothing else is a currency', () => {
    fc.assert(
      fc.property(anyCurrency, (currency) => {
        expect(parseCurrency(currency.toLowerCase())).toBe(currency)
        expect(parseCurrency(currency)).toBe(currency)
      }),
    )
    fc.assert(
      fc.property(fc.anything(), (value) => {
        fc.pre(!(typeof value === 'string' && CURRENCIES.has(value.toUpperCase())))
        expect(refusalOf(() => parseCurrency(value)).details.field).toBe('currency')
      }),
    )
    // The long s turns into an S when it is made capital.
    for (const value of ['uſd', ' USD', 'USD ', 'EUR\0', 'USDT', '', null, undefined, 840, ['USD']]) {
      refusalOf(() => parseCurrency(value))
    }
  })
})

describe('amounts', () => {
  it('are whole numbers from 1 to the limit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: AMOUNT_MAX }), (amount) => {
        expect(isAmount(amount)).toBe(true)
        expect(parseAmount(amount, 'EUR')).toBe(amount)
      }),
    )
  })

  it.each([
    ['100', /must be a number/],
    [10n, /must be a number/],
    [null, /must be a number/],
    [[100], /must be a number/],
    [10.5, /whole number/],
    [Number.NaN, /whole number/],
    [Number.POSITIVE_INFINITY, /whole number/],
    [0, /at least 1/],
    [-0, /at least 1/],
    [-100, /at least 1/],
    [AMOUNT_MAX + 1, /at most 99999999/],
    [2 ** 53, /at most/],
    [1e21, /at most/],
  ])('%s is refused', (value, message) => {
    expect(isAmount(value)).toBe(false)
    const refused = refusalOf(() => parseAmount(value, 'EUR', 'lines.amount'))
    expect(refused.message).toMatch(message)
    expect(refused.message).toContain('lines.amount')
    expect(refused.details.field).toBe('lines.amount')
  })

  it('come with their currency, which is looked at first', () => {
    expect(parseMoney({ amount: 100, currency: 'usd' })).toEqual({ amount: 100, currency: 'USD' })
    expect(refusalOf(() => parseMoney({ amount: 0, currency: 'usd' })).details.field).toBe('amount')
    expect(refusalOf(() => parseMoney({ amount: 0, currency: 'us' })).details.field).toBe('currency')
  })

  it('of three decimals end in zero', () => {
    expect(parseAmount(5_120, 'KWD')).toBe(5_120)
    expect(refusalOf(() => parseAmount(5_124, 'KWD')).message).toMatch(/must end in 0/)
    expect(parseAmount(5_124, 'JPY')).toBe(5_124)
  })
})

describe('money for people', () => {
  it.each([
    [123_450, 'EUR', '1,234.50 EUR'],
    [5, 'EUR', '0.05 EUR'],
    [500, 'JPY', '500 JPY'],
    [1_234_567, 'JPY', '1,234,567 JPY'],
    [5_120, 'KWD', '5.120 KWD'],
    [-5, 'USD', '-0.05 USD'],
    [0, 'USD', '0.00 USD'],
    [9_007_199_254_740_993n, 'USD', '90,071,992,547,409.93 USD'],
  ])('%s %s is %s', (amount, currency, text) => expect(formatMoney({ amount, currency })).toBe(text))

  it('says every amount exactly', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n }), anyCurrency, (amount, currency) => {
        const [number, code] = formatMoney({ amount, currency }).split(' ')
        expect(code).toBe(currency)
        expect(BigInt(number!.replace(/[.,]/g, ''))).toBe(amount)
        expect(number!.split('.')[1]?.length ?? 0).toBe(decimalsOf(currency))
      }),
    )
  })
})
