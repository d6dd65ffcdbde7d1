import { OnlyonceError } from '../core/errors.ts'
import type { KeyPurpose } from '../core/ring.ts'
import type { OnceRecord } from '../record/index.ts'
import type { KeyIds } from './contract.ts'

/** A key by what it is for and what it is called, and the digest of its bytes where that is known. */
export interface NamedKey {
  readonly purpose: KeyPurpose
  readonly keyId: string
  readonly digest?: string | null
}

/** Those of these keys that a process lacks: by their ids, or because it has other bytes under the id. */
export function lacking(named: readonly NamedKey[], keys: KeyIds): readonly NamedKey[] {
  return named.filter(({ purpose, keyId, digest }) => {
    if (!keys[purpose].includes(keyId)) return true
    return digest != null && keys.digestOf !== undefined && keys.digestOf(purpose, keyId) !== digest
  })
}

/** The keys without which a record cannot be compared, or its reply not be opened. */
export function keysOf(record: OnceRecord): readonly NamedKey[] {
  if (record.state === 'expired') return []
  const fingerprint: NamedKey = { purpose: 'fingerprint', keyId: record.fingerprint.keyId }
  if (record.state !== 'completed' || record.reply.sealedBy === null) return [fingerprint]
  return [fingerprint, { purpose: 'reply', keyId: record.reply.sealedBy }]
}

/** The refusal to start, which names every missing key and the option that it belongs into. */
export function keyRingIncomplete(
  missing: readonly NamedKey[],
  keys: KeyIds,
  why = '',
  cause?: unknown,
): OnlyonceError {
  const told = missing.map(({ purpose, keyId }) => {
    const hasOther = keys[purpose].includes(keyId) ? ' (the key with this id has other bytes here)' : ''
    return `${OPTION[purpose]} ${JSON.stringify(keyId)}${hasOther}`
  })
  const list = [...new Set(told)]
  return new OnlyonceError('key_ring_incomplete', { detail: `Missing: ${list.join(', ')}.${why}`, cause })
}

const OPTION: Readonly<Record<KeyPurpose, string>> = {
  fingerprint: 'in secret the fingerprint key',
  reply: 'in encryption the reply key',
}
