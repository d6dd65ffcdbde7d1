import type { Onlyonce } from '../door.ts'
import { OnlyonceError } from '../errors.ts'
import { scopeOf } from '../key/index.ts'
import { engineOf } from '../onlyonce.ts'
import { type OptionNames, refuseUnknown } from '../options.ts'
import { encodeValue } from '../value.ts'

/** What was told about a call, for example by a webhook. */
export interface Evidence {
  readonly account: string
  /** The key that the call was made with: what `call` was given. */
  readonly key: string
  /** The result of the call, in the form in which `call` would have returned it. */
  readonly result: unknown
}

const NAMES: OptionNames<Evidence> = { account: true, key: true, result: true }

/**
 * Keeps what was told about a call of an operation, often before its answer came. It is read before anybody asks
 * `find`, and acts only where the outcome is in doubt: then a worker looks at once. Telling it again changes nothing.
 *
 * @example
 * await addEvidence(once, { account, key: event.metadata.key, result: { id: event.charge.id } })
 */
export async function addEvidence<Tx>(once: Onlyonce<Tx>, evidence: Evidence): Promise<void> {
  refuseUnknown('addEvidence()', evidence, NAMES)
  const { account, key, result } = evidence
  const engine = engineOf(once)
  const owner = scopeOf(account, 'any').account
  if (typeof key !== 'string' || key === '') {
    throw new OnlyonceError('option_invalid', {
      detail: 'Evidence needs the key that the call was made with.',
    })
  }
  await engine.start()
  const { body } = encodeValue(result)
  const bytes = body!.length === 0 ? Buffer.from('null') : body!
  const id = await engine.durable.store.addEvidence(owner, key, { bytes, sealed_by: null })
  // Told every time: of what is told once, a crash in this moment would leave nothing.
  if (id !== null) engine.observers.emit({ signal: 'void_call_happened', id, call_key: key })
}
