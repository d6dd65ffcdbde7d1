import { LIMITS } from '../../core/limits.ts'
import type { RecordId } from '../../record/index.ts'
import type { Sealed } from '../../seal/index.ts'
import type { EvidenceEnd, Signed, ToldEvidence } from '../operations.ts'
import type { Connections } from './connections.ts'
import { inTurn } from './decisions.ts'
import { bind } from './flush.ts'
import type { Statements } from './statements.ts'

/**
 * The evidence is committed before anything else is asked: the worker that is hurried finds it. And where an operator declares the call
 * void at this very moment, at least one of the two sees the other: the next call is made only after the evidence was read.
 */
export async function addEvidence(
  connections: Connections,
  { insertEvidence, insertSignedEvidence, hurry, findWaiting, findVoidCall, hurryRecord }: Statements,
  account: string,
  callKey: string,
  { bytes, sealedBy }: Sealed,
  signed: Signed | null,
): Promise<EvidenceEnd> {
  const values = [account, callKey, bytes, sealedBy, `${LIMITS.evidenceFirstMs}`]
  const insert =
    signed === null
      ? bind(insertEvidence, ...values)
      : bind(insertSignedEvidence, ...values, signed.by, signed.why)
  const inserted = await inTurn(() => connections.run(insert))
  await connections.runBounded(bind(hurry, account, callKey))
  const waiting = await connections.run(bind(findWaiting, account, callKey))
  const end = { kept: inserted.rows[0]!.length > 0, awaited: waiting.rows[0]!.length > 0 }
  const { rows } = await connections.run(bind(findVoidCall, account, callKey))
  const row = rows[0]![0]
  if (row === undefined) return { ...end, voidOf: null }
  const id = { account, operation: row[0]!, key: row[1]! }
  await connections.runBounded(bind(hurryRecord, account, id.operation, id.key))
  return { ...end, voidOf: id }
}

export async function readEvidence(
  connections: Connections,
  { findEvidence }: Statements,
  { account, operation, key }: RecordId,
  callKey: string,
): Promise<ToldEvidence | null> {
  const { rows } = await connections.run(bind(findEvidence, account, operation, key, callKey))
  const row = rows[0]![0]
  if (row === undefined) return null
  return { bytes: Buffer.from(row[0]!, 'hex'), sealedBy: row[1] ?? null, receivedAt: row[2]! }
}
