import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { keyRing } from '../core/ring.ts'
import { matches, sign } from './sign.ts'

const { secretSizeMinBytes } = LIMITS
const secrets = fc.uint8Array({ minLength: secretSizeMinBytes, maxLength: 200 })
const bodies = fc.option(fc.uint8Array({ maxLength: 200 }))
const texts = fc.string({ unit: 'binary', maxLength: 300 })

function hmacOf(secret: Uint8Array, text: string, bytes: Uint8Array | null): Buffer {
  return createHmac('sha256', secret)
    .update(text, 'utf8')
    .update(bytes ?? '')
    .digest()
}

it('is HMAC-SHA-256, as Node makes it, for secrets of any length, texts and bytes', () => {
  const same = fc.property(secrets, texts, bodies, (secret, text, bytes) => {
    const ring = keyRing(secret, 'fingerprint')
    const fingerprint = sign(ring, { text, bytes })
    expect(fingerprint.digest.equals(hmacOf(secret, text, bytes))).toBe(true)
    expect(matches(ring, { text, bytes }, fingerprint)).toBe(true)
    expect(matches(ring, { text: `${text}.`, bytes }, fingerprint)).toBe(false)
  })
  fc.assert(same, { numRuns: 500 })
})

it.each([63, 64, 65])('also for a secret of %i bytes, about as long as a block of the hash', (length) => {
  const secret = Buffer.alloc(length, 7)
  const { digest } = sign(keyRing(secret, 'fingerprint'), { text: 'ä€😀', bytes: null })
  expect(digest).toEqual(hmacOf(secret, 'ä€😀', null))
})
