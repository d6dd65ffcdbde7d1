import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodePart, encodeParts, isWellFormed } from './parts.ts'

const anyPart = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '1:', '1:a', 'b1:', '\ud800', '\udc00'),
)

describe('encodeParts', () => {
  it('tells every list of parts from every other', () => {
    const lists = fc.array(anyPart, { maxLength: 4 })
    fc.assert(
      fc.property(lists, lists, (one, other) => {
        const same = one.length === other.length && one.every((part, i) => part === other[i])
        const hashed = (parts: string[]) =>
          Buffer.from(encodeParts(String(parts.length), ...parts)).toString('hex')
        expect(hashed(one) === hashed(other)).toBe(same)
      }),
      { numRuns: 2_000 },
    )
  })

  it('does not confuse the places where parts were joined', () => {
    expect(encodeParts('ab', 'c')).not.toBe(encodeParts('a', 'bc'))
    expect(encodeParts('a', '')).not.toBe(encodeParts('', 'a'))
    expect(encodeParts('1:a')).not.toBe(encodeParts('a'))
  })

  it('counts bytes, so that other languages make the same text', () => {
    expect(encodePart('é')).toBe('2:é')
    expect(encodePart('')).toBe('0:')
  })

  it('keeps halves of surrogate pairs apart, which UTF-8 would merge', () => {
    expect(encodePart('\ud800')).not.toBe(encodePart('\ud801'))
    expect(encodePart('\ud800')).toBe('u1:00d8')
  })

  it('keeps bytes apart from text', () => {
    expect(encodePart(Uint8Array.of(0x61))).toBe('b1:61')
    expect(encodePart(Buffer.from('xay').subarray(1, 2))).toBe('b1:61')
  })
})

describe('isWellFormed', () => {
  it('agrees with encoding to UTF-8 and back', () => {
    const units = fc.array(fc.constantFrom('a', '\ud83d', '\ude00', 'é')).map((list) => list.join(''))
    fc.assert(fc.property(units, (text) => isWellFormed(text) === (Buffer.from(text).toString() === text)))
  })
})
