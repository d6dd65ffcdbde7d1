import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { keyRing, type Secret } from './ring.ts'

const SECRET = 's'.repeat(32)

describe('keyRing', () => {
  it('takes a plain secret under the id default', () => {
    expect(keyRing(SECRET, 'fingerprint').currentId).toBe('default')
    expect(keyRing(new Uint8Array(32), 'fingerprint').keyIds).toEqual(['default'])
    expect(keyRing('é'.repeat(16), 'fingerprint').keyIds).toEqual(['default'])
  })

  it('takes several, one of them current', () => {
    const ring = keyRing(
      {
        current: 'b',
        keys: {
          a: SECRET,
          b: Buffer.alloc(40), // biome-ignore lint/style/useNamingConvention: a name that looks like a member of every object
          __proto__x: SECRET,
        },
      },
      'reply',
    )
    expect(ring.currentId).toBe('b')
    expect(ring.keyIds).toEqual(['b', 'a', '__proto__x'])
  })

  it.each<unknown>([
    undefined,
    null,
    7,
    '',
    's'.repeat(31),
    new Uint8Array(31),
    `${'s'.repeat(40)}\ud800`,
    [],
    {},
    { current: 'a' },
    { keys: { a: SECRET } },
    { current: 'a', keys: null },
    { current: 'a', keys: [SECRET] },
    { current: 'a', keys: {} },
    { current: 'b', keys: { a: SECRET } },
    { current: 'toString', keys: { a: SECRET } },
    { current: 'a', keys: { a: SECRET, b: 'short' } },
    { current: 'a', keys: { a: SECRET, b: 7 } },
    { current: 'a', keys: { a: SECRET, 'b c': SECRET } },
    { current: '', keys: { '': SECRET } },
    { current: 'a', keys: { a: SECRET, ['x'.repeat(65)]: SECRET } },
    { current: 'a', keys: { a: SECRET }, extra: 1 },
  ])('refuses secret %#', (secret) => {
    expect(() => keyRing(secret as Secret, 'fingerprint')).toThrow(
      expect.objectContaining({ code: 'secret_invalid' }),
    )
  })

  it.each([
    ['fingerprint', 'fingerprint_key_unknown'],
    ['reply', 'seal_key_unknown'],
  ] as const)('says what a missing key was for: %s', (purpose, code) => {
    const ring = keyRing(SECRET, purpose)
    expect(ring.find('default').export()).toEqual(Buffer.from(SECRET))
    expect(() => ring.find('gone')).toThrow(expect.objectContaining({ code, status: 503, retryable: true }))
    expect(() => ring.find('gone')).toThrow('"gone"')
  })

  it('shows its secrets to nobody', () => {
    const ring = keyRing({ current: 'a', keys: { a: 'hunter2-'.repeat(5) } }, 'reply')
    expect(inspect(ring, { depth: 9, showHidden: true }) + JSON.stringify(ring)).not.toContain('hunter2')
    expect(() => keyRing('hunter2', 'fingerprint')).toThrow(/^(?!.*hunter2)/)
  })

  it('does not depend on bytes that the caller changes later', () => {
    const bytes = Buffer.alloc(32, 1)
    const ring = keyRing(bytes, 'fingerprint')
    bytes.fill(0)
    expect(ring.find('default').export()).toEqual(Buffer.alloc(32, 1))
  })
})
