import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { encodeParts } from '../core/parts.ts'
import type { Scope } from './scope.ts'

/**
 * Keys that the server hands out: `once.1.<id of the signing key>.<expiry, nonce and MAC>`.
 *
 * The dots are no matter of taste: a business key is a name, `_` and digits, so none of them begins like this.
 * The nonce makes keys unique, so nothing is written anywhere. Account and operation are bound by the MAC and cannot
 * be read from the key.
 */
const PREFIX = 'once.'
/** A new version has to be understood by every process before any process issues it. */
const VERSION = '1'
/** Part of every key that is out there: a change would refuse them all. */
const DOMAIN = 'onlyonce.issued_key.v1'
/** What the signing key is derived by. Fingerprints are signed under another domain, with the secret itself. */
const DERIVATION = encodeParts('onlyonce.issued_key.v1.signing_key')

const EXPIRY_SIZE_BYTES = 5
const NONCE_SIZE_BYTES = 16
const MAC_SIZE_BYTES = 18
const EXPIRY_MAX_S = 2 ** (8 * EXPIRY_SIZE_BYTES) - 1

/**
 * 39 bytes are 52 characters without a bit to spare, so each key has one spelling only. The ids may hold dots, the
 * rest holds none: there is one way to read it.
 */
const FORM = /^once\.1\.([A-Za-z0-9_.-]{1,64})\.([A-Za-z0-9_-]{52})$/

/**
 * The secrets by id, as far as signing needs them. A `KeyRing` is one.
 *
 * @example
 * const ring: SigningRing = keyRing(secret)
 */
export interface SigningRing {
  readonly currentId: string
  readonly keyIds: readonly string[]
  find(keyId: string): KeyObject
}

/**
 * Whether a key claims to be issued. Such a key is never taken for a client's own, or a forged one would pass as
 * that.
 *
 * @example
 * looksIssued('once.1.default.…') // true
 */
export function looksIssued(key: string): boolean {
  return key.startsWith(PREFIX)
}

/**
 * Refuses a key that claims to be issued and does not have the form of one. Whose it is, only `IssuedKeys` can tell.
 *
 * @example
 * refuseMalformedIssued('once.upon a time') // throws key_forged
 */
export function refuseMalformedIssued(key: string): void {
  read(key)
}

/**
 * Makes issued keys, and tells them from all others. Keys signed by any secret of the ring are accepted, new ones are
 * signed by the current one.
 *
 * @example
 * const keys = new IssuedKeys(ring)
 * const key = keys.issue({ account: 'acct_1', operation: 'payments.create' }, expiresAtS)
 */
export class IssuedKeys {
  readonly #ring: SigningRing
  readonly #signingKeys: ReadonlyMap<string, KeyObject>

  constructor(ring: SigningRing) {
    this.#ring = ring
    this.#signingKeys = new Map(ring.keyIds.map((id) => [id, deriveSigningKey(ring.find(id))]))
  }

  issue(scope: Scope, expiresAtS: number): string {
    if (!Number.isInteger(expiresAtS) || expiresAtS < 0 || expiresAtS > EXPIRY_MAX_S) {
      throw new OnlyonceError('option_invalid', { detail: 'The expiry of an issued key is out of range.' })
    }
    const keyId = this.#ring.currentId
    const nonce = randomBytes(NONCE_SIZE_BYTES)
    const expiry = Buffer.alloc(EXPIRY_SIZE_BYTES)
    expiry.writeUIntBE(expiresAtS, 0, EXPIRY_SIZE_BYTES)
    const mac = macOf(this.#signingKeys.get(keyId)!, { keyId, scope, expiresAtS, nonce })
    return `${PREFIX}${VERSION}.${keyId}.${Buffer.concat([expiry, nonce, mac]).toString('base64url')}`
  }

  /**
   * When the key expires, in seconds. Throws `key_forged`, the same for a key that was never issued and for one that was
   * issued to another account: no client learns whose it is.
   *
   * A secret that is missing here is no proof of forgery. Another process may have it already, and may have done the
   * work: told to get a new key, the client would do it twice.
   */
  check(key: string, scope: Scope): number {
    const { keyId, expiresAtS, nonce, mac } = read(key)
    const signingKey = this.#signingKeys.get(keyId)
    if (signingKey === undefined) throw new OnlyonceError('key_signer_unknown')
    if (!timingSafeEqual(mac, macOf(signingKey, { keyId, scope, expiresAtS, nonce }))) refuse()
    return expiresAtS
  }
}

interface Signed {
  readonly keyId: string
  readonly scope: Scope
  readonly expiresAtS: number
  readonly nonce: Buffer
}

function deriveSigningKey(secret: KeyObject): KeyObject {
  return createSecretKey(createHmac('sha256', secret).update(DERIVATION).digest())
}

function macOf(signingKey: KeyObject, { keyId, scope, expiresAtS, nonce }: Signed): Buffer {
  const { account, operation } = scope
  const text = encodeParts(DOMAIN, VERSION, keyId, account, operation, `${expiresAtS}`, nonce)
  return createHmac('sha256', signingKey).update(text).digest().subarray(0, MAC_SIZE_BYTES)
}

function read(key: string): Omit<Signed, 'scope'> & { readonly mac: Buffer } {
  const found = FORM.exec(key)
  if (found === null) return refuse()
  const bytes = Buffer.from(found[2]!, 'base64url')
  return {
    keyId: found[1]!,
    expiresAtS: bytes.readUIntBE(0, EXPIRY_SIZE_BYTES),
    nonce: bytes.subarray(EXPIRY_SIZE_BYTES, EXPIRY_SIZE_BYTES + NONCE_SIZE_BYTES),
    mac: bytes.subarray(EXPIRY_SIZE_BYTES + NONCE_SIZE_BYTES),
  }
}

function refuse(): never {
  throw new OnlyonceError('key_forged')
}
