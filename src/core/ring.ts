import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { OnlyonceError, type PlainCode } from './errors.ts'
import { LIMITS } from './limits.ts'
import { isWellFormed } from './parts.ts'

/**
 * One secret, or several of which one is current. New records use the current one; the others stay until no
 * record names them.
 *
 * @example
 * const secret: Secret = { current: '2025-06', keys: { '2025-01': old, '2025-06': fresh } }
 */
export type Secret =
  | string
  | Uint8Array
  | { readonly current: string; readonly keys: Readonly<Record<string, string | Uint8Array>> }

/** What a ring is for: to tell requests apart, or to seal replies. */
export type KeyPurpose = 'fingerprint' | 'reply'

const KEY_ID = /^[A-Za-z0-9_.-]{1,64}$/
const KEY_ID_DEFAULT = 'default'
const UNKNOWN: Readonly<Record<KeyPurpose, PlainCode>> = {
  fingerprint: 'fingerprint_key_unknown',
  reply: 'seal_key_unknown',
}

/**
 * The secrets by id. They cannot be read back, printed or serialized.
 *
 * @example
 * keyRing(secret, 'fingerprint').currentId // 'default'
 */
export class KeyRing {
  readonly purpose: KeyPurpose
  #currentId: string | null
  readonly #keys: Map<string, KeyObject>

  /** Without a current id it is empty until a key is added. */
  constructor(purpose: KeyPurpose, currentId: string | null, keys: ReadonlyMap<string, KeyObject>) {
    this.purpose = purpose
    this.#currentId = currentId
    this.#keys = new Map(keys)
  }

  get currentId(): string {
    if (this.#currentId === null) throw keyUnknown(this.purpose, 'none')
    return this.#currentId
  }

  get isEmpty(): boolean {
    return this.#currentId === null
  }

  /** Adds a key that is not in it yet; in an empty ring it is the current one. What is there stays as it is. */
  add(keyId: string, secret: Uint8Array): void {
    if (!this.#keys.has(keyId)) this.#keys.set(keyId, readKey(keyId, secret))
    this.#currentId ??= keyId
  }

  /** Every id in the ring, the current one first; start-up compares them with those that live records name. */
  get keyIds(): string[] {
    return this.#currentId === null ? [] : [...new Set([this.#currentId, ...this.#keys.keys()])]
  }

  /** The key with this id. One that is missing is never taken for a difference, or for an absent reply. */
  find(keyId: string): KeyObject {
    const key = this.#keys.get(keyId)
    if (key === undefined) throw keyUnknown(this.purpose, keyId)
    return key
  }

  /** Tells keys with one id and other bytes apart, and says nothing else about the bytes. */
  digestOf(keyId: string): string {
    return createHmac('sha256', this.find(keyId))
      .update(`onlyonce:key-digest:v1:${this.purpose}`)
      .digest('base64url')
  }
}

/** The error of a record that names a key which this process does not have. */
export function keyUnknown(purpose: KeyPurpose, keyId: string): OnlyonceError {
  return new OnlyonceError(UNKNOWN[purpose], { detail: `Its id is ${JSON.stringify(keyId)}.` })
}

/**
 * Checks secrets once and makes them a ring. A plain secret gets the id `default`.
 *
 * @example
 * const ring = keyRing({ current: '2025-06', keys: { '2025-01': old, '2025-06': fresh } }, 'fingerprint')
 */
export function keyRing(secret: Secret, purpose: KeyPurpose): KeyRing {
  if (typeof secret === 'string' || secret instanceof Uint8Array) {
    const keys = new Map([[KEY_ID_DEFAULT, readKey(KEY_ID_DEFAULT, secret)]])
    return new KeyRing(purpose, KEY_ID_DEFAULT, keys)
  }
  if (!isRecord(secret) || !isRecord(secret.keys)) refuse('It is neither a secret nor a key ring.')
  for (const name of Object.keys(secret)) {
    if (name !== 'current' && name !== 'keys') refuse('A key ring has only current and keys.')
  }
  const keys = new Map(Object.entries(secret.keys).map(([id, key]) => [id, readKey(id, key)]))
  if (typeof secret.current !== 'string' || !keys.has(secret.current)) refuse('Its current id names no key.')
  return new KeyRing(purpose, secret.current, keys)
}

function readKey(keyId: string, secret: unknown): KeyObject {
  if (!KEY_ID.test(keyId)) refuse('A key id has 1 to 64 characters out of A-Z a-z 0-9 _ . -')
  const bytes = typeof secret === 'string' && isWellFormed(secret) ? Buffer.from(secret) : secret
  if (!(bytes instanceof Uint8Array)) return refuse(`The key ${keyId} is neither text nor bytes.`)
  if (bytes.byteLength < LIMITS.secretSizeMinBytes) {
    refuse(`The key ${keyId} is shorter than ${LIMITS.secretSizeMinBytes} bytes.`)
  }
  // Copies: zeroing the caller's bytes afterwards changes nothing here.
  return createSecretKey(bytes)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value)
}

function refuse(detail: string): never {
  throw new OnlyonceError('secret_invalid', { detail })
}
