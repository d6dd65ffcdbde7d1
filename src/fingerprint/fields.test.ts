import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson } from './canonical.ts'
import { compileFields, type FingerprintFields } from './fields.ts'
import { arrayIndex, formatPointer, parsePointer } from './pointer.ts'
import { selectFields } from './select.ts'
import { parseStrictJson } from './strict-json.ts'

const select = (text: string, fields: FingerprintFields) =>
  selectFields(parseStrictJson(text), compileFields(fields))
const seen = (text: string, fields: FingerprintFields) => JSON.stringify(select(text, fields))

const objects = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(1, null, 1e21))

describe('JSON Pointers', () => {
  it.each([
    ['', []],
    ['/', ['']],
    ['/foo', ['foo']],
    ['/foo/0', ['foo', '0']],
    ['/a~1b', ['a/b']],
    ['/m~0n', ['m~n']],
    ['/~01', ['~1']],
    ['/c%d', ['c%d']],
    ['/ ', [' ']],
    ['//x/', ['', 'x', '']],
  ])('%j has the tokens %j', (pointer, tokens) => {
    expect(parsePointer(pointer)).toEqual(tokens)
    expect(formatPointer(tokens)).toBe(pointer)
  })

  it('are read back as they were written', () => {
    const tokens = fc.array(fc.string({ unit: fc.constantFrom('~', '/', '0', '1', 'a') }), { maxLength: 4 })
    fc.assert(
      fc.property(tokens, (path) => {
        expect(parsePointer(formatPointer(path))).toEqual(path)
      }),
    )
  })

  it('name elements only by their one index', () => {
    expect(['0', '7', '10'].map(arrayIndex)).toEqual([0, 7, 10])
    expect(['', '-', '01', '+1', '1.0', '1e1', '-1', ' 1'].map(arrayIndex)).toEqual(Array(8).fill(-1))
  })
})

describe('compileFields', () => {
  it.each<unknown>([
    { exclude: 'a' },
    { exclude: ['a'] },
    { exclude: ['a/b'] },
    { exclude: ['#/a'] },
    { exclude: ['/a~'] },
    { exclude: ['/a~2'] },
    { exclude: [7] },
    { include: [Symbol('a')] },
    { include: [] },
    { exclude: [''] },
    { exclude: Array.from({ length: 65 }, (_, i) => `/${i}`) },
  ])('refuses fields %#', (fields) => {
    expect(() => compileFields(fields as FingerprintFields)).toThrow(
      expect.objectContaining({ code: 'pointer_invalid' }),
    )
  })

  it.each<unknown>([null, { omit: ['/a'] }])('refuses %j, which is no option of a fingerprint', (fields) => {
    expect(() => compileFields(fields as never)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  })

  it('drops what another pointer covers', () => {
    const { exclude } = compileFields({ exclude: ['/a/b', '/a', '/a-b', '/a', '/ab'] })
    expect(exclude.map(({ pointer }) => pointer).sort()).toEqual(['/a', '/a-b', '/ab'])
  })
})

describe('exclude', () => {
  it('removes members', () => {
    expect(select('{"a":1,"b":{"c":2,"d":3}}', { exclude: ['/a', '/b/c'] }).value).toEqual({ b: { d: 3 } })
    expect(select('{"a/b":1,"m~n":2,"":3,"x":4}', { exclude: ['/a~1b', '/m~0n', '/'] }).value).toEqual({
      x: 4,
    })
    expect(select('{"01":1,"-":2,"x":3}', { exclude: ['/01', '/-'] }).value).toEqual({ x: 3 })
  })

  it('changes nothing where there is nothing', () => {
    const fields = { exclude: ['/x', '/a/x', '/b/c/d', '/c/5', '/c/-', '/c/01', '/toString', '/__proto__/x'] }
    const text = '{"a":1,"b":{"c":null},"c":[1,2]}'
    expect(select(text, fields)).toEqual({ value: JSON.parse(text), inexact: [], gaps: [] })
    expect(select('7', fields).value).toBe(7)
  })

  it('does not look at prototypes', () => {
    expect(select('{"__proto__":1,"a":2}', { exclude: ['/__proto__'] }).value).toEqual({ a: 2 })
  })

  it('moves no element into the place of another', () => {
    expect(select('[1,2]', { exclude: ['/0'] })).toEqual({ value: [null, 2], inexact: [], gaps: ['/0'] })
    expect(seen('[1,2]', { exclude: ['/0'] })).not.toBe(seen('[2]', {}))
    expect(seen('[1,2]', { exclude: ['/0'] })).not.toBe(seen('[null,2]', {}))
    expect(seen('[1,2]', { exclude: ['/0'] })).not.toBe(seen('[2]', { exclude: ['/0'] }))
    expect(seen('[1,2]', { exclude: ['/0'] })).toBe(seen('[9,2]', { exclude: ['/0'] }))
    expect(select('{"a":[{"t":1,"b":2}]}', { exclude: ['/a/0/t'] }).value).toEqual({ a: [{ b: 2 }] })
  })

  it('drops inexact numbers there and below, and only those', () => {
    const text = '{"a":1e999,"ab":2e999,"b":{"c":[3e999]},"d":4e999}'
    const { inexact } = select(text, { exclude: ['/a', '/b'] })
    expect(inexact.map(({ pointer }) => pointer)).toEqual(['/ab', '/d'])
  })

  it('makes documents equal exactly when the rest is', () => {
    fc.assert(
      fc.property(objects, objects, (one, other) => {
        const excluded = (object: object) =>
          canonicalJson(select(JSON.stringify(object), { exclude: ['/a'] }))
        const rest = ({ a, ...members }: Record<string, unknown>) => canonicalJson(members)
        expect(excluded(one) === excluded(other)).toBe(rest(one) === rest(other))
      }),
    )
  })
})

describe('include', () => {
  const fields = { include: ['/amount', '/to/iban'] }

  it('looks at the listed subtrees alone', () => {
    expect(seen('{"amount":1,"to":{"iban":"x","name":"a"},"n":1}', fields)).toBe(
      seen('{"to":{"iban":"x","name":"b"},"amount":1}', fields),
    )
    expect(seen('{"amount":1}', fields)).not.toBe(seen('{"amount":2}', fields))
    expect(seen('{"amount":1,"to":{"iban":"x"}}', fields)).not.toBe(
      seen('{"amount":1,"to":{"iban":"y"}}', fields),
    )
  })

  it('makes documents equal exactly when what it lists is', () => {
    const listed = { include: ['/b', '/c'] }
    fc.assert(
      fc.property(objects, objects, (one, other) => {
        const kept = ({ a, ...members }: Record<string, unknown>) => canonicalJson(members)
        const same = kept(one) === kept(other)
        expect(seen(JSON.stringify(one), listed) === seen(JSON.stringify(other), listed)).toBe(same)
      }),
    )
  })

  it('keeps absent apart from null', () => {
    expect(seen('{"amount":null}', fields)).not.toBe(seen('{}', fields))
  })

  it('keeps values apart that stand at different pointers', () => {
    expect(seen('{"a":1}', { include: ['/a', '/b'] })).not.toBe(seen('{"b":1}', { include: ['/a', '/b'] }))
  })

  it('keeps an element apart from a member', () => {
    expect(seen('[1]', { include: ['/0'] })).not.toBe(seen('{"0":1}', { include: ['/0'] }))
  })

  it('includes the whole by the empty pointer', () => {
    expect(seen('{"a":1}', { include: [''] })).not.toBe(seen('{"a":2}', { include: [''] }))
  })

  it('takes what is excluded away from what is included', () => {
    const both = { include: ['/a'], exclude: ['/a/t', '/x'] }
    expect(seen('{"a":{"t":1,"b":2},"x":1}', both)).toBe(seen('{"a":{"t":2,"b":2},"x":3}', both))
    expect(seen('{"a":{"t":1,"b":2}}', both)).not.toBe(seen('{"a":{"t":1,"b":3}}', both))
    expect(select('{"a":{"b":1}}', { include: ['/a/b'], exclude: ['/a'] }).value).toEqual([])
  })

  it('keeps inexact numbers and gaps of what it keeps, and only those', () => {
    const text = '{"a":[1,2e999],"b":[3e999,4],"ab":5e999}'
    expect(select(text, { include: ['/a'], exclude: ['/a/0', '/b/0'] })).toMatchObject({
      inexact: [{ pointer: '/a/1' }],
      gaps: ['/a/0'],
    })
  })
})
