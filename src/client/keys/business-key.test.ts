import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { businessKey as ofServer } from '../../key/index.ts'
import { businessKey } from './business-key.ts'
import { sha256 } from './sha256.ts'

it('SHA-256 is that of Node.js, for texts and bytes of any length', () => {
  const reference = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex')
  for (let length = 0; length < 200; length++) {
    const bytes = new Uint8Array(length).map((_, i) => i * 7 + length)
    expect(sha256(bytes)).toBe(reference(bytes))
  }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => sha256(text) === reference(text)),
  )
  expect(sha256('a'.repeat(1_000_000))).toBe(reference('a'.repeat(1_000_000)))
})

describe('businessKey', () => {
  const part = fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1 }),
    fc.maxSafeInteger(),
    fc.bigInt(),
    fc.constantFrom('résumé', '😀', ' ', '0', -0),
  )
  const name = fc.oneof(
    fc.constantFrom('order', 'a b', 'résumé', 'Order-1_x'),
    fc.string({ minLength: 1, maxLength: 40 }),
  )

  it('is that of the server', () => {
    fc.assert(
      fc.property(name, fc.array(part, { minLength: 1, maxLength: 16 }), (name, parts) => {
        fc.pre(name.replace(/\D/g, '').length <= 12)
        expect(businessKey(name, ...parts)).toBe(ofServer(name, ...parts))
      }),
    )
  })

  it.each([
    ['no identifier', 'order', []],
    ['too many', 'order', Array.from({ length: 17 }, () => 1)],
    ['an empty name', '', [1]],
    ['an empty identifier', 'order', ['']],
    ['half of a pair', 'order', ['\ud83d']],
    ['a fraction', 'order', [1.5]],
    ['not a number', 'order', [Number.NaN]],
    ['what is neither', 'order', [null as unknown as string]],
    ['a card number for a name', 'x4242424242424242', [1]],
  ])('refuses %s', (_, name, parts) => {
    expect(() => businessKey(name, ...parts)).toThrow(TypeError)
    if (name !== 'x4242424242424242') expect(() => ofServer(name, ...parts)).toThrow()
  })
})
