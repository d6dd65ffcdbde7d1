import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { scopeOf } from '../key/index.ts'
import { signatureOf } from '../key/signature.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import { encodeValue } from '../record/value.ts'
import { orMissingRight } from '../store/missing-right.ts'
import type { EvidenceEnd, Signed } from '../store/operations.ts'

/** What was told about a call, for example by a webhook. */
export interface Evidence {
  readonly account: string
  /** The key that the call was made with: what `call` was given. */
  readonly key: string
  /** The result of the call, in the form in which `call` would have returned it. */
  readonly result: unknown
  /** The person who tells it, and why: both are kept in the audit of the record that waits for the call. Left out by webhooks. */
  readonly by?: string
  readonly why?: string
}

const NAMES: OptionNames<Evidence> = { account: true, key: true, result: true, by: true, why: true }

/** What became of evidence. */
export interface EvidenceTold {
  /** False where it was left out: it changes nothing. */
  readonly accepted: boolean
  /**
   * - `record_waits`: it is kept, and a record waits for this very call.
   * - `no_record_waits`: it is kept, and no record waits for such a call now. It may have come before the answer of the call, or behind it; but a
   *   wrong key or account looks the same.
   * - `call_is_void`: it is kept, and an operator has declared this call void: the signal `void_call_happened` is raised.
   * - `earlier_evidence_stands`: the first evidence about the call is kept, and this one is not.
   */
  readonly why: 'record_waits' | 'no_record_waits' | 'call_is_void' | 'earlier_evidence_stands'
}

/**
 * Keeps what was told about a call of an operation, often before its answer came. It is read before anybody asks
 * `find`, and acts only where the outcome is in doubt: then a worker looks at once. Telling it again changes nothing.
 * What is given back says what became of it.
 *
 * @example
 * const { accepted, why } = await addEvidence(once, { account, key: event.metadata.key, result: { id: event.charge.id } })
 * await addEvidence(once, { account, key: inDoubt.key, result: { id: 'ch_42' }, by: 'ann', why: 'seen at the gateway' })
 */
export async function addEvidence<Tx>(once: Onlyonce<Tx>, evidence: Evidence): Promise<EvidenceTold> {
  refuseUnknown('addEvidence()', evidence, NAMES)
  const { account, key, result } = evidence
  const engine = engineOf(once)
  const owner = scopeOf(account, 'any').account
  if (typeof key !== 'string' || key === '') {
    throw new OnlyonceError('option_invalid', {
      detail: 'Evidence needs the key that the call was made with.',
    })
  }
  const signed = signedBy(evidence)
  await engine.start()
  const { body } = encodeValue(result)
  const bytes = body!.length === 0 ? Buffer.from('null') : body!
  const told = { bytes, sealedBy: null }
  const end = await orMissingRight(() => engine.durable.store.addEvidence(owner, key, told, signed))
  // Told every time: of what is told once, a crash in this moment would leave nothing.
  if (end.voidOf !== null)
    engine.observers.emit({ signal: 'void_call_happened', id: end.voidOf, callKey: key })
  return { accepted: end.kept, why: whyOf(end) }
}

/** Null where no person has told it. */
function signedBy({ by, why }: Evidence): Signed | null {
  if (by === undefined && why === undefined) return null
  return signatureOf({ by: by!, why: why! })
}

function whyOf({ kept, awaited, voidOf }: EvidenceEnd): EvidenceTold['why'] {
  if (!kept) return 'earlier_evidence_stands'
  if (voidOf !== null) return 'call_is_void'
  return awaited ? 'record_waits' : 'no_record_waits'
}
