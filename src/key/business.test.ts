import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { businessKey } from './business.ts'
import { checkKey } from './check.ts'

const identifiers = fc.array(
  fc.oneof(fc.string({ unit: 'grapheme', minLength: 1 }), fc.maxSafeInteger(), fc.bigInt()),
  {
    minLength: 1,
    maxLength: 5,
  },
)

describe('businessKey', () => {
  it('is the digest of its parts, each behind its length', () => {
    const expected = createHash('sha256')
      .update('24:onlyonce.business_key.v15:order9:ord_192831:1')
      .digest('hex')
    expect(businessKey('order', 'ord_19283', 1)).toBe(`order_${expected}`)
  })

  it('never changes', () => {
    expect(businessKey('order', 'ord_19283', 1)).toBe(
      'order_1b468ac30eaddc60ffaacc9373499133390bb0b6c4c220c36399fdf21571b8a6',
    )
    expect(businessKey('résumé', 'ü', -5n)).toBe(
      'key_6a07271a947f8e8431ac9b4ea9433c271ef520d41bf9783ad0792499ca902593',
    )
  })

  it('is the same for a number, its text and its bigint', () => {
    expect(businessKey('order', 7)).toBe(businessKey('order', '7'))
    expect(businessKey('order', 7n)).toBe(businessKey('order', '7'))
    expect(businessKey('order', -0)).toBe(businessKey('order', 0))
    expect(businessKey('order', '07')).not.toBe(businessKey('order', 7))
  })

  it('depends on where one identifier ends', () => {
    expect(businessKey('order', 'a', 'bc')).not.toBe(businessKey('order', 'ab', 'c'))
    expect(businessKey('order', 'a', 'b')).not.toBe(businessKey('order', 'ab'))
    expect(businessKey('ordera', 'b')).not.toBe(businessKey('order', 'ab'))
    expect(businessKey('a b', 'c')).not.toBe(businessKey('a c', 'c'))
  })

  it('differs whenever its parts do, and passes as a key', () => {
    fc.assert(
      fc.property(identifiers, identifiers, (one, other) => {
        const same = JSON.stringify(one.map(String)) === JSON.stringify(other.map(String))
        expect(businessKey('order', ...one) === businessKey('order', ...other)).toBe(same)
        expect(checkKey(businessKey('order', ...one))).toMatch(/^order_[0-9a-f]{64}$/)
      }),
    )
  })

  it.each(['has space', 'ö', '7seas', 'a'.repeat(33), 'a_4242424242424242', 'joe@example.com'])(
    'leaves the name %j out of the readable part',
    (name) => expect(checkKey(businessKey(name, 1))).toMatch(/^key_[0-9a-f]{64}$/),
  )

  it.each([
    ['order'],
    ['order', ''],
    ['order', null],
    ['order', undefined],
    ['order', Number.NaN],
    ['order', 1.5],
    ['order', 2 ** 53],
    ['order', Number.POSITIVE_INFINITY],
    ['order', true],
    ['order', {}],
    ['order', ['a']],
    ['order', '\ud800'],
    ['', 1],
    [null, 1],
    ['\udc00', 1],
    ['order', ...Array(17).fill('x')],
  ])('refuses %j', (...parts) => {
    const [name, ...rest] = parts as [string, ...string[]]
    expect(() => businessKey(name, ...rest)).toThrow(
      expect.objectContaining({ code: 'business_key_invalid' }),
    )
  })
})
