import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeQuery, type Query } from './query.ts'

describe('encodeQuery', () => {
  it.each<[Query | undefined, Query | undefined]>([
    ['a=1&b=2', 'b=2&a=1'],
    ['?a=1', 'a=1'],
    ['', undefined],
    ['?', undefined],
    [[], undefined],
    ['a=1&&b=2&', 'a=1&b=2'],
    ['a', 'a='],
    ['a+b=c+d', 'a%20b=c%20d'],
    ['a=%c3%a9', 'a=%C3%A9'],
    ['a=%C3%A9', 'a=é'],
    ['a=%61', 'a=a'],
    ['a=1&a=2&b=3', 'b=3&a=1&a=2'],
    ['a=b=c', 'a=b%3Dc'],
    ['a=%zz', 'a=%25zz'],
    ['a=%', 'a=%25'],
    [
      'a=x%20y&b=%26',
      [
        ['b', '&'],
        ['a', 'x y'],
      ],
    ],
  ])('takes %j and %j for the same', (one, other) => expect(encodeQuery(one)).toBe(encodeQuery(other)))

  it.each<[Query | undefined, Query | undefined]>([
    ['a=1', 'a=2'],
    ['a=1', undefined],
    ['a=', undefined],
    ['a=1&a=2', 'a=2&a=1'],
    ['a=1&a=2', 'a=1'],
    ['a=1&b=2', 'a=1%26b=2'],
    ['a=1&b=2', 'a=2&b=1'],
    ['ab=', 'a=b'],
    ['a=%ff', 'a=%fe'],
    ['a=%ff', 'a=%25ff'],
    ['a=%ff', 'a=%EF%BF%BD'],
    ['a=%ff%zz', 'a=%ff%zy'],
    ['a=%2B', 'a=+'],
    ['a=\ud800', 'a=\ud801'],
    ['a=\ud800%zz', 'a=\ud801%zz'],
    ['A=1', 'a=1'],
  ])('tells %j from %j', (one, other) => expect(encodeQuery(one)).not.toBe(encodeQuery(other)))

  it('agrees with URLSearchParams on what is text', () => {
    const pieces = fc.string({
      // No bare é: beside a percent sign that encodes nothing, Node 20 reads it as another character.
      unit: fc.constantFrom('x', 'y', '=', '&', '+', '%20', '%C3%A9', '%'),
      maxLength: 6,
    })
    const meaning = (query: string) =>
      JSON.stringify(
        [...new URLSearchParams(query)].sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)),
      )
    fc.assert(
      fc.property(pieces, pieces, (one, other) => {
        expect(encodeQuery(one) === encodeQuery(other)).toBe(meaning(one) === meaning(other))
      }),
      { numRuns: 10_000 },
    )
  })

  it('never throws on text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (query) => typeof encodeQuery(query) === 'string'))
    const percents = fc.string({ unit: fc.constantFrom('%', 'f', 'F', '0', 'z', '&', '=') })
    fc.assert(fc.property(percents, (query) => typeof encodeQuery(query) === 'string'))
  })

  it.each<unknown>([{ a: 1, length: 1 }, [['a', 1]], [[1, 'a']], [['a']]])('refuses %j', (query) => {
    expect(() => encodeQuery(query as Query)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  })

  it('has a limit', () => {
    expect(() => encodeQuery('a&'.repeat(10_001))).toThrow(
      expect.objectContaining({ code: 'json_too_many_members' }),
    )
  })
})
