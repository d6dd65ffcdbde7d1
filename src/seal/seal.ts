import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { encodeParts } from '../core/parts.ts'
import { type KeyRing, keyUnknown } from '../core/ring.ts'
import type { RecordId, Reply } from '../record/index.ts'
import { packReply, unpackReply } from './envelope.ts'

/** Part of every derived key and of every seal: a change would make all sealed records unreadable. */
const DOMAIN = 'onlyonce.seal.v1'
const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Where sealed bytes stand. They can be opened there and nowhere else.
 *
 * @example
 * const place: SealedPlace = { kind: 'input', id, beside: [] }
 */
export interface SealedPlace {
  readonly kind: 'reply' | 'input' | 'progress' | 'evidence' | 'discarded' | 'webhook_secret'
  readonly id: RecordId
  /** What stands beside the bytes in the clear and must not be changed either. */
  readonly beside: readonly number[]
}

/** Bytes as they are stored: nonce, ciphertext and tag, or the plain bytes where `sealedBy` is null. */
export interface Sealed {
  readonly bytes: Buffer
  readonly sealedBy: string | null
}

/**
 * Seals and opens what is stored, by AES-256-GCM. Without a ring it stores as it is given, and opens what is
 * plain; so turning encryption on leaves older records readable.
 *
 * Measured on a busy machine, derivation of the key included: some 15 us each for a reply of 200 bytes, under a
 * millisecond for the largest.
 *
 * @example
 * const seal = new Seal(keyRing(encryption, 'reply'))
 * const stored = seal.sealReply(id, reply)
 */
export class Seal {
  readonly #ring: KeyRing | null

  constructor(ring: KeyRing | null) {
    this.#ring = ring
  }

  /** The ids of the keys that can open, the current one first; none without encryption. */
  get keyIds(): readonly string[] {
    return this.#ring?.keyIds ?? []
  }

  digestOf(keyId: string): string {
    if (this.#ring === null) throw keyUnknown('reply', keyId)
    return this.#ring.digestOf(keyId)
  }

  seal(place: SealedPlace, plain: Buffer): Sealed {
    if (this.#ring === null) return { bytes: plain, sealedBy: null }
    const sealedBy = this.#ring.currentId
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, deriveKey(this.#ring, sealedBy, place.id), nonce, OPTIONS)
    cipher.setAAD(describe(place, sealedBy))
    const bytes = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
    return { bytes, sealedBy }
  }

  /**
   * Throws `seal_key_unknown` where the key is missing, and `seal_broken` where the bytes are not what was
   * sealed for this place.
   */
  open(place: SealedPlace, { bytes, sealedBy }: Sealed): Buffer {
    if (sealedBy === null) return bytes
    if (this.#ring === null) throw keyUnknown('reply', sealedBy)
    const key = deriveKey(this.#ring, sealedBy, place.id)
    if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new OnlyonceError('seal_broken')
    const tagStart = bytes.length - TAG_BYTES
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), OPTIONS)
    decipher.setAAD(describe(place, sealedBy))
    decipher.setAuthTag(bytes.subarray(tagStart))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, tagStart)), decipher.final()])
    } catch (cause) {
      throw new OnlyonceError('seal_broken', { cause })
    }
  }

  /** Headers and body become one sealed body; status and schema stay readable, and cannot be exchanged. */
  sealReply(id: RecordId, reply: Reply): Reply {
    if (this.#ring === null) return reply
    const { bytes, sealedBy } = this.seal(placeOf(id, reply), packReply(reply))
    return { status: reply.status, headers: [], body: bytes, schema: reply.schema, sealedBy }
  }

  /** The reply that was sealed; one that is plain comes back as it is. */
  openReply(id: RecordId, stored: Reply): Reply {
    const { body, sealedBy } = stored
    if (sealedBy === null) return stored
    // A sealed body is never absent: that the reply was not kept is said inside it.
    const plain = this.open(placeOf(id, stored), { bytes: body ?? Buffer.alloc(0), sealedBy })
    return { status: stored.status, schema: stored.schema, ...unpackReply(plain) }
  }
}

const OPTIONS = { authTagLength: TAG_BYTES }

/**
 * A key for each record. That binds what is sealed to its account, operation and key: in another row it is
 * noise. It also does away with the limit on random nonces, some 2^32 under one key of GCM: a record is sealed
 * a few times in its life, and all records of all time share no key.
 */
function deriveKey(ring: KeyRing, keyId: string, { account, operation, key }: RecordId): Buffer {
  return createHmac('sha256', ring.find(keyId))
    .update(encodeParts(DOMAIN, account, operation, key))
    .digest()
}

/** The rest of what a seal vouches for. The key id too: two ids may have been given the same bytes. */
function describe({ kind, beside }: SealedPlace, keyId: string): Buffer {
  return Buffer.from(encodeParts(DOMAIN, kind, keyId, `${beside.length}`, ...beside.map(String)))
}

function placeOf(id: RecordId, { status, schema }: Reply): SealedPlace {
  return { kind: 'reply', id, beside: [status, schema] }
}
