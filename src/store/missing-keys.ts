import { OnlyonceError } from '../errors.ts'
import type { OnceRecord } from '../record/index.ts'
import type { KeyPurpose } from '../ring.ts'
import type { KeyIds } from './contract.ts'

/** A key by what it is for and what it is called. */
export interface NamedKey {
  readonly purpose: KeyPurpose
  readonly key_id: string
}

/** Those of these keys that a process lacks. */
export function lacking(named: readonly NamedKey[], keys: KeyIds): readonly NamedKey[] {
  return named.filter(({ purpose, key_id }) => !keys[purpose].includes(key_id))
}

/** The keys without which a record cannot be compared, or its reply not be opened. */
export function keysOf(record: OnceRecord): readonly NamedKey[] {
  if (record.state === 'expired') return []
  const fingerprint: NamedKey = { purpose: 'fingerprint', key_id: record.fingerprint.key_id }
  if (record.state !== 'completed' || record.reply.sealed_by === null) return [fingerprint]
  return [fingerprint, { purpose: 'reply', key_id: record.reply.sealed_by }]
}

/** The refusal to start, which names every missing key and the option that it belongs into. */
export function keyRingIncomplete(missing: readonly NamedKey[], why = '', cause?: unknown): OnlyonceError {
  const list = [
    ...new Set(missing.map(({ purpose, key_id }) => `${OPTION[purpose]} ${JSON.stringify(key_id)}`)),
  ]
  return new OnlyonceError('key_ring_incomplete', { detail: `Missing: ${list.join(', ')}.${why}`, cause })
}

const OPTION: Readonly<Record<KeyPurpose, string>> = {
  fingerprint: 'in secret the fingerprint key',
  reply: 'in encryption the reply key',
}
