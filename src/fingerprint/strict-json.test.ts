import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OnlyonceError } from '../core/errors.ts'
import { parseStrictJson } from './strict-json.ts'

const code = (code: string) => expect.objectContaining({ code })

function codeOf(source: string | Uint8Array): string | null {
  try {
    parseStrictJson(source)
    return null
  } catch (error) {
    if (error instanceof OnlyonceError) return error.code
    throw error
  }
}

describe('parseStrictJson', () => {
  it.each([
    'null',
    ' true ',
    'false',
    '0',
    '-1.5e3',
    '1E+2',
    '""',
    '"a\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00é😀"',
    '[]',
    '[ ]',
    '[1,[2,[]],{}]',
    '{}',
    '{ }',
    '\t{\r\n"a" : {"b":[1 , 2]}, "" : null}\n',
    '{"1":1,"0":2,"toString":3,"constructor":4,"hasOwnProperty":5}',
  ])('reads %s as JSON.parse does', (text) => {
    expect(parseStrictJson(text)).toEqual({ value: JSON.parse(text), inexact: [] })
    expect(parseStrictJson(Buffer.from(text)).value).toEqual(JSON.parse(text))
  })

  it('keeps __proto__ as an ordinary member', () => {
    const { value } = parseStrictJson('{"__proto__":{"admin":true},"a":1}')
    expect(Object.keys(value as object)).toEqual(['__proto__', 'a'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect((value as { admin?: boolean }).admin).toBe(undefined)
    expect(codeOf('{"__proto__":1,"__proto__":2}')).toBe('json_duplicate_member')
    expect(codeOf('{"__proto__":null,"__proto__":2}')).toBe('json_duplicate_member')
  })

  it.each([
    '',
    ' ',
    'nul',
    'nulll',
    'True',
    'undefined',
    'NaN',
    'Infinity',
    '-',
    '+1',
    '01',
    '-01',
    '1.',
    '.5',
    '1e',
    '1e+',
    '0x10',
    '1 2',
    '[1,]',
    '[,1]',
    '[1',
    '[1 2]',
    '[',
    ']',
    '{',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{"a":1 "b":2}',
    '{a:1}',
    "{'a':1}",
    '{1:1}',
    '{"a":1',
    '"',
    '"a',
    '"\\',
    '"\\x41"',
    '"\\u12"',
    '"\\u12g4"',
    '"\\u 123"',
    '"a\nb"',
    '"a\tb"',
    '"\0"',
    '// c\n1',
    '/* c */ 1',
    '1//',
    '\u00a01',
    '\ufeff1',
    '\f1',
    '{}{}',
  ])('refuses %j as malformed', (text) => {
    expect(() => JSON.parse(text)).toThrow()
    expect(codeOf(text)).toBe('json_malformed')
    expect(codeOf(Buffer.from(text))).toBe('json_malformed')
  })

  it('says where, and never what', () => {
    expect(() => parseStrictJson('{"secret": hunter2}')).toThrow(/character 11\.$/)
    expect(() => parseStrictJson('{"secret": hunter2}')).toThrow(/^(?!.*(hunter|secret))/)
    expect(() => parseStrictJson('{"pan":1,"pan":2}')).toThrow(/^(?!.*pan)/)
  })

  it.each(['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '[{"x":{"b":1,"c":2,"b":3}}]', '{"":1,"":2}'])(
    'refuses %s as naming a member twice',
    (text) => expect(codeOf(text)).toBe('json_duplicate_member'),
  )

  it('does not confuse members of different objects', () => {
    expect(codeOf('{"a":{"a":[{"a":1},{"a":1}]}}')).toBe(null)
  })

  it.each([
    '"\\ud800"',
    '"\\udc00"',
    '"\\ude00\\ud83d"',
    '"\\ud83dx"',
    '{"\\ud800":1}',
    '"\ud800"',
    '{"a\udc00":1}',
  ])('refuses half a surrogate pair in %j', (text) => expect(codeOf(text)).toBe('json_lone_surrogate'))

  it.each([[0xff], [0xc0, 0xaf], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]])(
    'refuses bytes %j',
    (...bytes) => {
      expect(codeOf(Buffer.from([0x22, ...bytes, 0x22]))).toBe('json_not_utf8')
    },
  )

  it('refuses a byte order mark', () => {
    expect(() => parseStrictJson(Buffer.from([0xef, 0xbb, 0xbf, 0x31]))).toThrow(/byte order mark/)
  })

  it('reads exactly its part of a larger buffer', () => {
    expect(parseStrictJson(Buffer.from('xx[1]yy').subarray(2, 5)).value).toEqual([1])
  })
})

describe('numbers', () => {
  it('keeps what a double cannot hold', () => {
    const text =
      '{"a":12345678901234567890,"b":[1,1e400],"c~/d":0.1000000000000000055511151231257827,"e":9007199254740993}'
    expect(parseStrictJson(text)).toEqual({
      value: { a: null, b: [1, null], 'c~/d': null, e: null },
      inexact: [
        { pointer: '/a', decimal: '1234567890123456789e1' },
        { pointer: '/b/1', decimal: '1e400' },
        { pointer: '/c~0~1d', decimal: '1000000000000000055511151231257827e-34' },
        { pointer: '/e', decimal: '9007199254740993e0' },
      ],
    })
    expect(parseStrictJson('1e400').inexact).toEqual([{ pointer: '', decimal: '1e400' }])
  })

  it('points past objects that were read before', () => {
    const text = '[{"a":{"b":1}},{"c":[[],[1,1e999]]},1e999]'
    expect(parseStrictJson(text).inexact.map(({ pointer }) => pointer)).toEqual(['/1/c/1/1', '/2'])
  })

  it('takes -0 for 0', () => {
    expect(Object.is(parseStrictJson('-0').value, 0)).toBe(true)
    expect(Object.is(parseStrictJson('-0.0e5').value, 0)).toBe(true)
  })

  it('takes no time over a huge exponent or mantissa', () => {
    const start = performance.now()
    parseStrictJson('1e999999999999')
    parseStrictJson(`[${'1e99999999999999999999,'.repeat(9_000)}1]`)
    parseStrictJson(`1e${'9'.repeat(1_000_000)}`)
    parseStrictJson(`0.${'0'.repeat(1_000_000)}1`)
    parseStrictJson('9'.repeat(1_000_000))
    expect(performance.now() - start).toBeLessThan(10_000)
  })
})

describe('limits', () => {
  it.each(['[', '{"a":', '[{"a":', '[[],'])('refuses %j a hundred thousand deep', (open) => {
    const start = performance.now()
    expect(() => parseStrictJson(open.repeat(100_000))).toThrow(code('json_too_deep'))
    expect(performance.now() - start).toBeLessThan(5_000)
  })

  it('refuses a million levels', () => {
    expect(codeOf('['.repeat(1_000_000))).toBe('json_too_deep')
    expect(codeOf(Buffer.alloc(1_000_000, '['))).toBe('json_too_deep')
  })

  it('draws the line at the limit', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(codeOf(nested(64))).toBe(null)
    expect(codeOf(nested(65))).toBe('json_too_deep')
    expect(codeOf(`[${'1,'.repeat(9_999)}1]`)).toBe(null)
    expect(codeOf(`[${'1,'.repeat(10_000)}1]`)).toBe('json_too_many_members')
    expect(codeOf(`"${'a'.repeat(1_048_574)}"`)).toBe(null)
    expect(codeOf(`"${'a'.repeat(1_048_575)}"`)).toBe('body_too_large')
    expect(codeOf(`"${'é'.repeat(524_287)}"`)).toBe(null)
    expect(codeOf(`"${'é'.repeat(524_288)}"`)).toBe('body_too_large')
    expect(codeOf(Buffer.alloc(1_048_577, ' '))).toBe('body_too_large')
  })

  it('counts members of all objects and arrays together', () => {
    const objects = `[${Array(5_001).fill('{"a":1}').join()}]`
    expect(codeOf(objects)).toBe('json_too_many_members')
  })

  it('takes other limits', () => {
    expect(() => parseStrictJson('[[1]]', { jsonDepthMax: 1 })).toThrow(code('json_too_deep'))
    expect(() => parseStrictJson('[1,2]', { jsonMembersMax: 1 })).toThrow(code('json_too_many_members'))
    expect(() => parseStrictJson('[1]', { bodySizeMaxBytes: 2 })).toThrow(code('body_too_large'))
    expect(parseStrictJson('['.repeat(500) + ']'.repeat(500), { jsonDepthMax: 500 }).inexact).toEqual([])
    for (const jsonDepthMax of [0, 1.5, 501, Number.NaN]) {
      expect(() => parseStrictJson('1', { jsonDepthMax })).toThrow(code('option_invalid'))
    }
  })
})

describe('against JSON.parse', () => {
  it('reads every value that JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(4), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        // Both sides go through text: -0 is written as 0.
        expect(parseStrictJson(text)).toEqual({ value: JSON.parse(text), inexact: [] })
        expect(parseStrictJson(Buffer.from(text)).value).toEqual(JSON.parse(text))
      }),
      { numRuns: 1_000 },
    )
  })

  it('accepts and refuses what JSON.parse does, duplicates and halves of pairs aside', () => {
    const tokens = fc.constantFrom(
      ...'{}[],:"\\ \n',
      'true',
      'null',
      '"a"',
      '"b":',
      '1',
      '-',
      '0',
      '.5',
      'e',
      'E+1',
      '\\u0041',
      '\\n',
      'é',
    )
    fc.assert(
      fc.property(fc.array(tokens, { maxLength: 9 }), (list) => {
        const text = list.join('')
        let expected: unknown
        try {
          expected = { value: JSON.parse(text) }
        } catch {
          expect(codeOf(text)).not.toBe(null)
          return
        }
        if (codeOf(text) === 'json_duplicate_member') return
        const { value, inexact } = parseStrictJson(text)
        if (inexact.length === 0) expect(JSON.stringify({ value })).toBe(JSON.stringify(expected))
      }),
      { numRuns: 20_000 },
    )
  })

  it('finds any change of one character, or refuses it too', () => {
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 3 }),
        fc.nat(),
        fc.constantFrom(...'{}[],:"\\x0-. e'),
        (json, at, char) => {
          const i = at % json.length
          const text = json.slice(0, i) + char + json.slice(i + 1)
          let valid = true
          try {
            JSON.parse(text)
          } catch {
            valid = false
          }
          const found = codeOf(text)
          if (found === 'json_duplicate_member' || found === 'json_lone_surrogate') return
          expect(found === null).toBe(valid)
        },
      ),
      { numRuns: 5_000 },
    )
  })
})
