import { derivedKey } from '../key/index.ts'
import { resultOf, type StepKind, Steps } from '../operation/steps.ts'
import type { RecordSummary } from '../store/decisions.ts'
import type { OperationStore } from '../store/operations.ts'
import { readDiscarded, type ShownDiscarded } from './discard.ts'

/** A step of an unfinished operation that is durable, and its result. */
export interface ShownStep {
  readonly name: string
  /** `undoing` is where the operation began to undo what it had done; its result is what it will end with. */
  readonly kind: StepKind
  readonly result: unknown
}

/** What was told about a call of an operation, and stands. */
export interface ShownEvidence {
  readonly key: string
  readonly receivedAt: number
  readonly result: unknown
}

/** What the steps of an operation have brought, and what others have told about its calls. */
export interface ShownResults {
  readonly steps: readonly ShownStep[]
  readonly evidence: readonly ShownEvidence[]
  /** What operators have discarded, also of an operation that is finished. */
  readonly discarded: readonly ShownDiscarded[]
}

/** Opened with the keys of this process, as a reply is. */
export async function resultsOf<Tx>(store: OperationStore<Tx>, record: RecordSummary): Promise<ShownResults> {
  const progress = await store.progress(record)
  const { entries } = Steps.read(progress?.bytes ?? null)
  const evidence: ShownEvidence[] = []
  for (const key of callKeys(record, entries)) {
    const told = await store.evidence(record, key)
    if (told === null) continue
    const receivedAt = Math.floor(Number(told.receivedAt) / 1_000)
    evidence.push({ key, receivedAt, result: JSON.parse(told.bytes.toString('utf8')) })
  }
  const steps = entries.map((entry) => ({ name: entry.name, kind: entry.kind, result: resultOf(entry) }))
  return { steps, evidence, discarded: await discardedOf(store, record) }
}

async function discardedOf<Tx>(
  store: OperationStore<Tx>,
  record: RecordSummary,
): Promise<readonly ShownDiscarded[]> {
  const found = await store.discarded(record)
  return found.map(({ seq, callKey: key, bytes }) =>
    bytes === null
      ? { seq, key, step: null, result: undefined, readable: false }
      : { seq, key, ...readDiscarded(bytes), readable: true },
  )
}

/** The calls that are known by their keys: the one in doubt, those that are void, and those that have a result. */
function callKeys(record: RecordSummary, entries: Steps['entries']): ReadonlySet<string> {
  const keys = new Set(record.voidCalls)
  if (record.waitsFor !== null) keys.add(record.waitsFor)
  for (const { name, kind } of entries) {
    if (kind !== 'foreign' && kind !== 'undo_foreign') continue
    for (let generation = 0; generation <= record.voidCalls.length; generation += 1)
      keys.add(derivedKey({ ...record, step: name, generation }))
  }
  return keys
}
