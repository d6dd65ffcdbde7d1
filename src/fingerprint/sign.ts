import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { KeyRing } from '../ring.ts'
import type { Preimage } from './prepare.ts'

/**
 * The keyed digest of what a request means, and the id of the key it was made with.
 *
 * @example
 * const fingerprint: Fingerprint = sign(ring, preimage)
 */
export interface Fingerprint {
  readonly key_id: string
  /** HMAC-SHA-256, 32 bytes. */
  readonly digest: Buffer
}

/**
 * Makes the fingerprint with the ring's current key.
 *
 * @example
 * const fingerprint = sign(ring, prepareInput({ operation: 'transfers.create', input }))
 */
export function sign(ring: KeyRing, preimage: Preimage): Fingerprint {
  const key_id = ring.current_id
  return { key_id, digest: digest(ring.find(key_id), preimage) }
}

/**
 * Whether a stored fingerprint was made from the same request. Uses the key that the fingerprint names, so
 * that a rotation breaks no live record; a key that the ring lacks is an error, never a difference.
 *
 * @example
 * if (!matches(ring, preimage, record.fingerprint)) return keyReused()
 */
export function matches(ring: KeyRing, preimage: Preimage, stored: Fingerprint): boolean {
  const computed = digest(ring.find(stored.key_id), preimage)
  return computed.length === stored.digest.length && timingSafeEqual(computed, stored.digest)
}

function digest(key: KeyObject, { text, bytes }: Preimage): Buffer {
  const hmac = createHmac('sha256', key).update(text, 'utf8')
  return (bytes === null ? hmac : hmac.update(bytes)).digest()
}
