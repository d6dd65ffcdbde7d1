import { createHmac, createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyRing as ringOf, type Secret } from '../core/ring.ts'
import { businessKey } from './business.ts'
import { checkKey } from './check.ts'
import { derivedKey } from './derived.ts'
import { parseKeyHeader } from './header.ts'
import { IssuedKeys, looksIssued } from './issued.ts'

const keyRing = (secret: Secret) => ringOf(secret, 'fingerprint')
const A = 'secret-a-0123456789-0123456789-0123456789'
const B = 'secret-b-0123456789-0123456789-0123456789'
const SCOPE = { account: 'acct_1', operation: 'payments.create' }
const EXPIRY_S = 1_900_000_000
const keys = new IssuedKeys(keyRing(A))
const code = (code: string) => expect.objectContaining({ code })
const forged = code('key_forged')

/** Every character that may stand in a key that clients send. */
const PRINTABLE = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1 })

describe('an issued key', () => {
  it('is what it says on the tin', () => {
    const key = keys.issue(SCOPE, EXPIRY_S)
    const bytes = Buffer.from(key.slice('once.1.default.'.length), 'base64url')
    const nonce = bytes.subarray(5, 21)
    const signingKey = createHmac('sha256', A).update('34:onlyonce.issued_key.v1.signing_key').digest()
    const text = `22:onlyonce.issued_key.v11:17:default6:acct_115:payments.create10:1900000000b16:${nonce.toString('hex')}`
    expect(key).toMatch(/^once\.1\.default\.[A-Za-z0-9_-]{52}$/)
    expect(bytes.readUIntBE(0, 5)).toBe(EXPIRY_S)
    expect(bytes.subarray(21)).toEqual(createHmac('sha256', signingKey).update(text).digest().subarray(0, 18))
  })

  it('of an older release is accepted', () => {
    const key = 'once.1.default.AHE_swBr3Ew8tAkUvi9XUZqqCSFVXtOftJiIPgiVuXbOpTQMj_lp'
    expect(keys.check(key, SCOPE)).toBe(EXPIRY_S)
  })

  it('is read back for any scope and expiry', () => {
    const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(names, names, fc.integer({ min: 0, max: 2 ** 40 - 1 }), (account, operation, expiryS) => {
        const key = keys.issue({ account, operation }, expiryS)
        expect(key).toHaveLength(67)
        expect(keys.check(key, { account, operation })).toBe(expiryS)
      }),
    )
  })

  it('stays short with the longest id, and an id may hold dots', () => {
    for (const id of ['x'.repeat(64), 'a.b.c', '.', '-', '2025.06']) {
      const ring = new IssuedKeys(keyRing({ current: id, keys: { [id]: A } }))
      const key = ring.issue(SCOPE, EXPIRY_S)
      expect(key.length).toBeLessThanOrEqual(124)
      expect(checkKey(key)).toBe(key)
      expect(ring.check(key, SCOPE)).toBe(EXPIRY_S)
    }
  })

  it('is refused with any character changed, added or left out', () => {
    const key = keys.issue(SCOPE, EXPIRY_S)
    fc.assert(
      fc.property(fc.nat(key.length - 1), PRINTABLE, (at, char) => {
        const changed = key.slice(0, at) + char + key.slice(at + 1)
        if (changed !== key) expect(accepts(keys, changed)).toBe(false)
        expect(accepts(keys, key.slice(0, at) + char + key.slice(at))).toBe(false)
        expect(accepts(keys, key.slice(0, at) + key.slice(at + 1))).toBe(false)
      }),
      { numRuns: 3_000 },
    )
  })

  it('has no second spelling', () => {
    const key = keys.issue(SCOPE, EXPIRY_S)
    const spellings = [`${key}=`, `${key}==`, ` ${key}`, `${key} `, `${key}\n`, key.toUpperCase(), `${key}A`]
    for (const text of spellings) expect(accepts(keys, text)).toBe(false)
    // Base64 decoders take + for - and / for _; one key in which they stand is found soon.
    const dashed = issueUntil((issued) => /[-_]/.test(issued.slice(15)))
    const respelled = dashed.slice(0, 15) + dashed.slice(15).replaceAll('-', '+').replaceAll('_', '/')
    expect(respelled).not.toBe(dashed)
    expect(accepts(keys, respelled)).toBe(false)
    // The same bytes never come from two texts of the form.
    const payload = fc.stringMatching(/^[A-Za-z0-9_-]{52}$/)
    fc.assert(
      fc.property(payload, (text) => {
        expect(Buffer.from(text, 'base64url').toString('base64url')).toBe(text)
      }),
    )
  })

  it.each([
    ['another account', { ...SCOPE, account: 'acct_2' }],
    ['another operation', { ...SCOPE, operation: 'refunds.create' }],
    ['names that run into each other', { account: 'acct_1payments', operation: '.create' }],
    ['account and operation changed about', { account: SCOPE.operation, operation: SCOPE.account }],
  ])('is refused for %s exactly as a forged one is', (_, scope) => {
    const foreign = errorOf(() => keys.check(keys.issue(SCOPE, EXPIRY_S), scope))
    const madeUp = errorOf(() => keys.check(`once.1.default.${'A'.repeat(52)}`, SCOPE))
    const { code, status, retryable, message } = foreign
    expect({ code, status, retryable, message }).toEqual({
      code: 'key_forged',
      status: 400,
      retryable: false,
      message: madeUp.message,
    })
  })

  it('is bound to any account and operation', () => {
    const names = fc.string({ unit: fc.constantFrom('a', 'b', '1', ':'), minLength: 1, maxLength: 3 })
    const scopes = fc.record({ account: names, operation: names })
    fc.assert(
      fc.property(scopes, scopes, (one, other) => {
        const same = one.account === other.account && one.operation === other.operation
        expect(accepts(keys, keys.issue(one, EXPIRY_S), other)).toBe(same)
      }),
      { numRuns: 500 },
    )
  })

  it('is unique without a database', () => {
    const issued = Array.from({ length: 2_000 }, () => keys.issue(SCOPE, EXPIRY_S))
    expect(new Set(issued).size).toBe(issued.length)
  })

  it.each([-1, 1.5, 2 ** 40, Number.NaN])('cannot expire at %s', (expiryS) => {
    expect(() => keys.issue(SCOPE, expiryS)).toThrow(code('option_invalid'))
  })
})

describe('the ring', () => {
  const onlyA = new IssuedKeys(keyRing({ current: 'a', keys: { a: A } }))
  const bAfterA = new IssuedKeys(keyRing({ current: 'b', keys: { a: A, b: B } }))

  it('accepts what any of its secrets signed, and signs with the current one', () => {
    expect(bAfterA.check(onlyA.issue(SCOPE, EXPIRY_S), SCOPE)).toBe(EXPIRY_S)
    expect(bAfterA.issue(SCOPE, EXPIRY_S)).toMatch(/^once\.1\.b\./)
  })

  it('does not call a key forged that names a secret it lacks', () => {
    const error = errorOf(() => onlyA.check(bAfterA.issue(SCOPE, EXPIRY_S), SCOPE))
    expect(error).toMatchObject({ code: 'key_signer_unknown', status: 503, retryable: true })
  })

  it('refuses another secret under the same id, and a key whose id was changed', () => {
    const other = new IssuedKeys(keyRing({ current: 'a', keys: { a: B } }))
    expect(() => other.check(onlyA.issue(SCOPE, EXPIRY_S), SCOPE)).toThrow(forged)
    const renamed = onlyA.issue(SCOPE, EXPIRY_S).replace('once.1.a.', 'once.1.b.')
    expect(() => bAfterA.check(renamed, SCOPE)).toThrow(forged)
    const sameSecret = new IssuedKeys(keyRing({ current: 'b', keys: { a: A, b: A } }))
    expect(() => sameSecret.check(renamed, SCOPE)).toThrow(forged)
  })

  it('signs with a key of its own, not with the secret', () => {
    const secret = createSecretKey(Buffer.from(A))
    const nonce = Buffer.alloc(16)
    const text = `22:onlyonce.issued_key.v11:17:default6:acct_115:payments.create10:1900000000b16:${nonce.toString('hex')}`
    const mac = createHmac('sha256', secret).update(text).digest().subarray(0, 18)
    const expiry = Buffer.alloc(5)
    expiry.writeUIntBE(EXPIRY_S, 0, 5)
    const key = `once.1.default.${Buffer.concat([expiry, nonce, mac]).toString('base64url')}`
    expect(() => keys.check(key, SCOPE)).toThrow(forged)
  })
})

describe('at the door', () => {
  it('passes every rule, whatever its random part looks like', () => {
    const issued = Array.from({ length: 5_000 }, (_, i) => keys.issue(SCOPE, EXPIRY_S + i))
    for (const key of issued) {
      expect(checkKey(key)).toBe(key)
      expect(parseKeyHeader(key, { issued: 'required', lengthMin: 255 })).toBe(key)
      expect(parseKeyHeader(`"${key}"`)).toBe(key)
    }
    // What chance would hardly show: a card number that stands free.
    const unlucky = `once.1.default.${'A'.repeat(17)}-4242424242424242-${'A'.repeat(17)}`
    expect(checkKey(unlucky)).toBe(unlucky)
    expect(derivedKey({ ...SCOPE, key: unlucky, step: 'charged' })).toHaveLength(43)
  })

  it.each(['once.upon a time', 'once.1.', 'once.2.default.', 'once.1.default.AAAA', 'once.........'])(
    'never takes %j for a key of the client',
    (key) => {
      expect(() => checkKey(key)).toThrow(forged)
      expect(() => parseKeyHeader(`"${key}"`)).toThrow(forged)
      expect(() => checkKey(key, { issued: 'required' })).toThrow(forged)
    },
  )

  it('lets no business key and no derived key be taken for an issued one', () => {
    for (const name of ['once', 'once.1', 'once.1.default', 'once_1']) {
      expect(looksIssued(businessKey(name, 1))).toBe(false)
    }
    expect(derivedKey({ ...SCOPE, key: 'abcdefgh', step: 's' })).not.toContain('.')
  })

  it('wants an issued key where one is required', () => {
    const required = { issued: 'required' } as const
    for (const key of ['8e03978e-40d5-43e8-bc93-6894a57f9324', 'Once.1.default.', ' once.1.default.', 'k']) {
      expect(() => checkKey(key, required)).toThrow(code('key_not_issued'))
    }
    expect(() => checkKey('', required)).toThrow(code('key_empty'))
    expect(() => checkKey(7, required)).toThrow(code('key_not_a_string'))
  })
})

function accepts(by: IssuedKeys, key: string, scope = SCOPE): boolean {
  try {
    by.check(key, scope)
    return true
  } catch (error) {
    // A changed id names a secret that is not there; all else is forged.
    expect(['key_forged', 'key_signer_unknown']).toContain((error as { code: string }).code)
    return false
  }
}

function issueUntil(isWanted: (key: string) => boolean): string {
  for (let tries = 0; tries < 1_000; tries += 1) {
    const key = keys.issue(SCOPE, EXPIRY_S)
    if (isWanted(key)) return key
  }
  throw new Error('not found in a thousand keys')
}

function errorOf(run: () => unknown): Error & { code: string; status: number; retryable: boolean } {
  try {
    run()
  } catch (error) {
    return error as ReturnType<typeof errorOf>
  }
  throw new Error('It did not fail.')
}
