import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkInput } from './input.ts'

const refused = expect.objectContaining({ code: 'input_not_serializable' })

class Money {
  amount = 1200
  currency = 'eur'
}

class Hidden {
  #amount = 1200
  get amount() {
    return this.#amount
  }
}

describe('checkInput', () => {
  it('gives a copy of plain values', () => {
    const input = { b: [1, 'two', null, true], a: { c: -0 } }
    const copy = checkInput(input)
    expect(copy).toEqual({ a: { c: 0 }, b: [1, 'two', null, true] })
    expect(Object.keys(copy as object)).toEqual(['a', 'b'])
    expect((copy as { b: unknown }).b).not.toBe(input.b)
  })

  it('goes by the rules of JSON where they lose nothing', () => {
    expect(checkInput(undefined)).toBe(undefined)
    expect(checkInput({ a: undefined, b: 1 })).toEqual({ b: 1 })
    expect(checkInput([undefined, 1])).toEqual([null, 1])
    expect(checkInput(new Array(2))).toEqual([null, null])
    expect(checkInput({ at: new Date(0) })).toEqual({ at: '1970-01-01T00:00:00.000Z' })
    expect(checkInput(new Money())).toEqual({ amount: 1200, currency: 'eur' })
    expect(checkInput({ price: { toJSON: (name: string) => `${name}!` } })).toEqual({ price: 'price!' })
    expect(checkInput({ gone: { toJSON: () => undefined } })).toEqual({})
    expect(checkInput(Object.assign(Object.create(null), { a: 1 }))).toEqual({ a: 1 })
    expect(checkInput(runInNewContext('({ a: {}, b: [] })'))).toEqual({ a: {}, b: [] })
  })

  it('keeps __proto__ as an ordinary member', () => {
    const copy = checkInput(JSON.parse('{"__proto__":{"x":1}}'))
    expect(Object.keys(copy as object)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
  })

  it.each<[string, unknown, RegExp]>([
    ['a function', { a: { b: () => 1 } }, /at \/a\/b is a function/],
    ['a symbol', [Symbol('x')], /at \/0 is a symbol/],
    ['a bigint', { 'a/b~c': 1n }, /at \/a~1b~0c is a bigint/],
    ['a bare bigint', 1n, /The input is a bigint/],
    ['NaN', { a: [1, Number.NaN] }, /at \/a\/1 is not a finite number/],
    ['Infinity', Number.NEGATIVE_INFINITY, /The input is not a finite/],
    ['a Map', { m: new Map([['a', 1]]) }, /at \/m is an object that/],
    ['a Set', new Set([1]), /cannot show/],
    ['an error', new Error('x'), /cannot show/],
    ['a regular expression', /x/, /cannot show/],
    ['bytes', Uint8Array.of(1, 2), /cannot show/],
    ['a promise', Promise.resolve(1), /cannot show/],
    ['a boxed number', Object(1), /cannot show/],
    ['a query', new URLSearchParams('a=1'), /cannot show/],
    ['hidden state', new Hidden(), /cannot show/],
    ['an invalid date', { at: new Date(Number.NaN) }, /at \/at is an invalid date/],
    ['half a surrogate pair', { a: '\ud800' }, /at \/a holds half/],
    ['half a pair in a name', { '\ud800': 1 }, /surrogate/],
    ['what toJSON gives', { a: { toJSON: () => 1n } }, /at \/a is a bigint/],
  ])('refuses %s and says where', (_, input, detail) => {
    expect(() => checkInput(input)).toThrow(refused)
    expect(() => checkInput(input)).toThrow(detail)
  })

  it('refuses cycles', () => {
    const input: Record<string, unknown> = { list: [] }
    ;(input.list as unknown[]).push(input)
    expect(() => checkInput(input)).toThrow(/at \/list\/0 is a cycle/)
    const own: { toJSON?: () => unknown } = {}
    own.toJSON = () => ({ own })
    expect(() => checkInput(own)).toThrow(refused)
  })

  it('accepts one object in two places', () => {
    const shared = { a: 1 }
    expect(checkInput([shared, shared, { shared }])).toEqual([{ a: 1 }, { a: 1 }, { shared: { a: 1 } }])
  })

  it('refuses what is too deep or too large', () => {
    const nested = (depth: number) => {
      let value: unknown = 1
      for (let i = 0; i < depth; i++) value = [value]
      return value
    }
    expect(() => checkInput(nested(64))).not.toThrow()
    expect(() => checkInput(nested(65))).toThrow(/nested too deeply/)
    expect(() => checkInput(nested(1_000_000))).toThrow(refused)
    expect(() => checkInput(Array(10_000).fill(1))).not.toThrow()
    expect(() => checkInput(Array(10_001).fill(1))).toThrow(/too many members/)
    expect(() => checkInput(new Array(2 ** 32 - 1))).toThrow(/too many members/)
    expect(() => checkInput({ a: Array(6_000).fill(1), b: Array(6_000).fill(1) })).toThrow(/too many members/)
  })

  it('wraps what the input itself throws', () => {
    const cause = new Error('mine')
    const input = {
      get a() {
        throw cause
      },
    }
    expect(() => checkInput(input)).toThrow(
      expect.objectContaining({ code: 'input_not_serializable', cause }),
    )
  })

  it('agrees with JSON on every JSON value, dates and undefined among them', () => {
    const leaves = [
      fc.boolean(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.string(),
      fc.date({ noInvalidDate: true }),
      fc.constantFrom(null, undefined),
    ]
    fc.assert(
      fc.property(fc.object({ values: leaves, maxDepth: 4 }), (input) => {
        expect(checkInput(input)).toEqual(JSON.parse(JSON.stringify(input)))
      }),
    )
  })
})
