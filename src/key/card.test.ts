import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isCardNumber, maskBeginning, maskCardNumbers } from './card.ts'

/** An oracle that shares nothing with the source: digits from the right, one at a time. */
function passesLuhn(digits: string): boolean {
  const sum = [...digits].reverse().reduce((total, char, i) => {
    const digit = Number(char) * (i % 2 === 1 ? 2 : 1)
    return total + Math.floor(digit / 10) + (digit % 10)
  }, 0)
  return sum % 10 === 0
}

const digitsOf = (min: number, max: number) =>
  fc.array(fc.constantFrom(...'0123456789'), { minLength: min, maxLength: max }).map((list) => list.join(''))
const cards = digitsOf(12, 18).map((body) => {
  const last = [...'0123456789'].find((digit) => passesLuhn(body + digit))
  return `${body}${last}`
})

describe('isCardNumber', () => {
  it.each([
    '4242424242424242',
    '4242 4242 4242 4242',
    '4242-4242-4242-4242',
    '4242.4242.4242.4242',
    '4242 - 4242 - 4242 - 4242',
    '378282246310005',
    '3782 822463 10005',
    '4222222222222',
    '6304000000000000000',
  ])('knows %s', (text) => expect(isCardNumber(text)).toBe(true))

  it.each([
    '',
    '4242424242424241',
    '424242424242',
    'x4242424242424242',
    '4242424242424242 ',
    '-4242424242424242',
  ])('does not take %j for one', (text) => expect(isCardNumber(text)).toBe(false))

  it('agrees with the Luhn check on every length', () => {
    fc.assert(
      fc.property(digitsOf(1, 24), (digits) => {
        const expected = digits.length >= 13 && digits.length <= 19 && passesLuhn(digits)
        expect(isCardNumber(digits)).toBe(expected)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('maskCardNumbers', () => {
  it.each([
    ['declined: 4242424242424242', 'declined: [card number]'],
    ['4242 4242 4242 4242 was declined', '[card number] was declined'],
    ['a 4242-4242-4242-4242, b 378282246310005.', 'a [card number], b [card number].'],
    ['pan=4242424242424242&cvc=123', 'pan=[card number]&cvc=123'],
    ['card4242424242424242x', 'card[card number]x'],
    ['order 4242424242424241', 'order 4242424242424241'],
    ['id 42424242424242424242424242', 'id 42424242424242424242424242'],
    ['4242 4242 4242 4242 4242 4242 4242!', '[card number]!'],
    ['nothing here', 'nothing here'],
    ['', ''],
  ])('%j becomes %j', (text, masked) => expect(maskCardNumbers(text)).toBe(masked))

  it('finds the card behind other digits', () => {
    expect(maskCardNumbers('on 2024-01-15 4242 4242 4242 4242 failed')).not.toContain('4242 4242 4242 4242')
    expect(maskCardNumbers('7 7 7 7 7 4242424242424242')).not.toContain('4242424242424242')
  })

  it('hides every card number wherever it stands', () => {
    const texts = fc
      .array(fc.constantFrom(...'abc xyz:;/=\n'), { maxLength: 20 })
      .map((list) => list.join(''))
    fc.assert(
      fc.property(texts, cards, texts, (before, card, after) => {
        const masked = maskCardNumbers(`${before}:${card}:${after}`)
        expect(masked).toBe(`${before}:[card number]:${after}`)
      }),
    )
  })

  it('leaves text without thirteen digits alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        if (text.replace(/\D/g, '').length < 13) expect(maskCardNumbers(text)).toBe(text)
      }),
    )
  })

  it('takes time in proportion to the text', () => {
    const start = performance.now()
    for (const text of ['4', '4 ', '42-', '4242 ', '- ', '4...']) maskCardNumbers(text.repeat(300_000))
    expect(performance.now() - start).toBeLessThan(10_000)
  })
})

describe('the masked beginning of a text', () => {
  it('is that of the whole text, masked, wherever the cut is', () => {
    const card = '4242 - 4242 - 4242 - 4242'
    for (let at = 0; at < 120; at += 1) {
      const text = `${'a'.repeat(at)} ${card} and more`
      expect(maskBeginning(text, 100)).toBe(maskCardNumbers(text).slice(0, 100))
    }
  })

  it('costs what it shows, and not what the text is long', () => {
    const text = '4 '.repeat(5_000_000)
    const start = performance.now()
    for (let i = 0; i < 1_000; i += 1) maskBeginning(text, 300)
    expect(performance.now() - start).toBeLessThan(5_000)
  })
})
