import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson } from './canonical.ts'

function fromBits(hex: string): number {
  return Buffer.from(hex, 'hex').readDoubleBE()
}

describe('RFC 8785', () => {
  it('section 3.2.2 and 3.2.4: the sample and its bytes', () => {
    const sample = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`
    const bytes = `
      7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
      75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
      5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
      65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
      5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
      30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d`
    const canonical = canonicalJson(JSON.parse(sample))!
    expect(canonical).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    )
    expect(Buffer.from(canonical).toString('hex')).toBe(bytes.replace(/\s/g, ''))
  })

  it.each(['\ud83d\ude00', '\ud83d\ude02'])(
    'section 3.2.3: members sorted by UTF-16 code units, with %s',
    (emoji) => {
      const sample = {
        '\u20ac': 'Euro Sign',
        '\r': 'Carriage Return',
        '\ufb33': 'Hebrew Letter Dalet With Dagesh',
        '1': 'One',
        [emoji]: 'Emoji',
        '\u0080': 'Control',
        '\u00f6': 'Latin Small Letter O With Diaeresis',
      }
      // JSON.parse would enumerate "1" first again, so the order is read off the text.
      const order = [...canonicalJson(sample)!.matchAll(/:"([^"]*)"/g)].map((match) => match[1])
      expect(order).toEqual([
        'Carriage Return',
        'One',
        'Control',
        'Latin Small Letter O With Diaeresis',
        'Euro Sign',
        'Emoji',
        'Hebrew Letter Dalet With Dagesh',
      ])
    },
  )

  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('appendix B: %s is %s', (hex, text) => expect(canonicalJson(fromBits(hex))).toBe(text))

  it.each(['7fffffffffffffff', '7ff0000000000000', 'fff0000000000000'])(
    'appendix B: %s is an error',
    (hex) => {
      expect(() => canonicalJson(fromBits(hex))).toThrow(
        expect.objectContaining({ code: 'input_not_serializable' }),
      )
    },
  )
})

describe('canonicalJson', () => {
  it('writes what canonicalize writes, on both of its ways', () => {
    const names = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('10', '9', '1', '01', 'a', '__proto__', 'toJSON'),
    )
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 4 }, tie('leaf'), tie('list'), tie('object')),
      leaf: fc.oneof(
        fc.constant(null),
        fc.boolean(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.string({ unit: 'grapheme' }),
      ),
      list: fc.array(tie('tree'), { maxLength: 4 }),
      object: fc.dictionary(names, tie('tree'), { maxKeys: 5 }),
    }))
    fc.assert(
      fc.property(tree, (value) => {
        expect(canonicalJson(value)).toBe((canonicalize as unknown as (value: unknown) => string)(value))
      }),
      { numRuns: 2_000 },
    )
  })

  it('sorts array indices as text', () => {
    expect(canonicalJson({ 9: 1, 10: 2, a: 3, '': 4 })).toBe('{"":4,"10":2,"9":1,"a":3}')
  })

  it('keeps undefined apart from null', () => {
    expect(canonicalJson(undefined)).toBe(undefined)
    expect(canonicalJson(null)).toBe('null')
  })
})
