import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkKey } from './check.ts'

const code = (code: string) => expect.objectContaining({ code })

describe('checkKey', () => {
  it.each([
    [undefined, 'key_not_a_string'],
    [null, 'key_not_a_string'],
    [12345678, 'key_not_a_string'],
    [['abcdefgh'], 'key_not_a_string'],
    ['', 'key_empty'],
    ['          ', 'key_blank'],
    ['abcdefg', 'key_too_short'],
    ['a'.repeat(256), 'key_too_long'],
    ['a'.repeat(1e7), 'key_too_long'],
    ['abcdefgh\n', 'key_control_character'],
    ['abcd\0efgh', 'key_control_character'],
    ['abcdefgh\x7f', 'key_control_character'],
    ['abcdefgh\x80', 'key_not_ascii'],
    ['schlüssel', 'key_not_ascii'],
    ['4242424242424242', 'key_card_number'],
  ])('refuses %j as %s', (key, expected) => {
    expect(() => checkKey(key)).toThrow(code(expected))
  })

  it.each(['abcdefgh', 'a'.repeat(255), 'a, b; "c" d\\', ' padded ', '"quoted"', '~!@#$%^&*()'])(
    'accepts %j',
    (key) => {
      expect(checkKey(key)).toBe(key)
    },
  )

  it('obeys the rules', () => {
    expect(checkKey('a', { lengthMin: 1 })).toBe('a')
    expect(() => checkKey('a'.repeat(19), { lengthMin: 20 })).toThrow(code('key_too_short'))
    expect(checkKey('4242424242424242', { allowSensitive: true })).toBe('4242424242424242')
    expect(() => checkKey('abcdefgh', { lengthMin: 0 })).toThrow(code('option_invalid'))
  })

  it('accepts printable ASCII and nothing else', () => {
    const lengths = { minLength: 1, maxLength: 300 }
    const units = ['grapheme-ascii', 'binary-ascii', 'binary'] as const
    const keys = fc.oneof(...units.map((unit) => fc.string({ ...lengths, unit })))
    fc.assert(
      fc.property(keys, (key) => {
        const printable = /^[\x20-\x7e]{8,255}$/.test(key) && key.trim() !== ''
        let accepted = true
        try {
          checkKey(key, { allowSensitive: true })
        } catch {
          accepted = false
        }
        expect(accepted).toBe(printable)
      }),
    )
  })

  it('never repeats the key in its message', () => {
    expect(() => checkKey('joe@example.com')).toThrow(/^(?!.*joe)/)
  })
})
