import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkKey } from './check.ts'
import { derivedKey } from './derived.ts'

const of = {
  account: 'acct_1',
  operation: 'payments.create',
  key: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  step: 'charged',
}

describe('derivedKey', () => {
  it('never changes', () => {
    expect(derivedKey(of)).toBe('GGoDxo6kbjdkhwOO3wkAu9EYGjnG0dztgY2sqpdAHF0')
    expect(derivedKey({ account: 'ö', operation: 'a', key: 'k', step: 's' })).toBe(
      '9meU4tFsE9rBAvy4M940nRsi9ZXNosyR74cozq-3LLg',
    )
  })

  it('never changes in later generations either, and the first is the one without a number', () => {
    expect(derivedKey({ ...of, generation: 0 })).toBe(derivedKey(of))
    const text = '34:onlyonce.derived_key.generation.v12:ö1:a1:k1:s1:7'
    const expected = createHash('sha256').update(text).digest('base64url')
    expect(derivedKey({ account: 'ö', operation: 'a', key: 'k', step: 's', generation: 7 })).toBe(expected)
    const keys = Array.from({ length: 20 }, (_, generation) => derivedKey({ ...of, generation }))
    expect(new Set(keys).size).toBe(20)
  })

  it('is the digest of its parts, each behind its length', () => {
    const text = '23:onlyonce.derived_key.v12:ö1:a1:k1:s'
    const expected = createHash('sha256').update(text).digest('base64url')
    expect(derivedKey({ account: 'ö', operation: 'a', key: 'k', step: 's' })).toBe(expected)
  })

  it('is the same in every version of the operation', () => {
    expect(derivedKey({ ...of, operation: 'payments.create@2' })).toBe(derivedKey(of))
  })

  it('fits gateways and our own doors', () => {
    expect(derivedKey(of)).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(checkKey(derivedKey(of))).toBe(derivedKey(of))
  })

  it('differs whenever a part does', () => {
    const names = fc.string({ unit: fc.constantFrom('a', 'b', '1', ':'), minLength: 1, maxLength: 3 })
    const parts = fc.record({ account: names, operation: names, key: names, step: names })
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        expect(derivedKey(one) === derivedKey(other)).toBe(JSON.stringify(one) === JSON.stringify(other))
      }),
      { numRuns: 1_000 },
    )
  })

  it('takes a key that only relaxed rules let in', () => {
    expect(derivedKey({ ...of, key: '4242424242424242' })).toHaveLength(43)
  })

  it.each([
    [{ account: '' }, 'account_invalid'],
    [{ operation: '' }, 'operation_invalid'],
    [{ key: '' }, 'key_empty'],
    [{ key: 'ü' }, 'key_not_ascii'],
    [{ step: '' }, 'option_invalid'],
    [{ generation: -1 }, 'option_invalid'],
    [{ generation: 0.5 }, 'option_invalid'],
    [{ step: '\ud800' }, 'option_invalid'],
    [{ step: undefined }, 'option_invalid'],
  ])('refuses %j as %s', (change, code) => {
    expect(() => derivedKey({ ...of, ...change } as typeof of)).toThrow(expect.objectContaining({ code }))
  })
})
