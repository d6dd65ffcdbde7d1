/** An operator says that the last durable step of an operation, a call, holds a wrong result. */
import { OnlyonceError } from '../core/errors.ts'
import { callKeys } from '../operation/call-site.ts'
import { type Entry, resultOf, Steps } from '../operation/steps.ts'
import type { Failure } from '../record/index.ts'
import type { Seen } from '../store/contract.ts'
import type { RecordSummary } from '../store/decisions.ts'
import type { DiscardRequest } from '../store/operations.ts'
import { decidable, NO_OPERATION, type Signature } from './decide.ts'

/** Whose result is discarded, by whom, and why. */
export type Discarding = Omit<Signature, 'tx'> & {
  /** The name of the step. It has to be the last durable one: nothing that was done behind it is undone in silence. */
  readonly step: string
}

/** The call that is in doubt again. */
export interface Discarded {
  readonly step: string
  /** The key of the call: what the other side knows it by, and what evidence names. */
  readonly key: string
}

/** What was discarded, as the audit keeps it. */
export interface ShownDiscarded {
  /** The number of its entry in the audit. */
  readonly seq: number
  readonly key: string
  readonly step: string | null
  /** Undefined where the step had no result, or where it cannot be opened: see `readable`. */
  readonly result: unknown
  /** False where this process lacks the key that it was sealed with. */
  readonly readable: boolean
}

/** What the store is asked to do, by what was seen. Throws where the result cannot be discarded. */
export function discardStep(
  seen: Seen | null,
  summary: RecordSummary | null,
  progress: Buffer | null,
  given: Discarding,
): Omit<DiscardRequest, 'by' | 'why'> {
  const from = decidable(seen, ['in_progress', 'unknown', 'parked'])
  if (summary === null || from.kind !== 'operation') throw refused(NO_OPERATION)
  const steps = Steps.read(progress)
  const last = steps.entries.at(-1)
  if (last === undefined) throw refused('No step of it is durable, so there is no result to discard.')
  if (last.name !== given.step)
    throw refused(`${lastIs(last)} The result of ${given.step} cannot be discarded.`)
  if (!isCall(last)) throw refused(`${lastIs(last)} Only the result of a call can be discarded.`)
  const { account, operation, key, waitsFor, waitsStep, voidCalls } = summary
  // A call that follows may have been made upon the result: what became of it is found out first.
  if (waitsFor !== null || (waitsStep !== null && waitsStep !== last.name))
    throw refused(followedBy(waitsStep ?? 'behind it'))
  const id = { account, operation, key }
  const { points, discarded } = steps.withoutLast()
  return {
    id,
    seen: { fence: from.fence, attemptId: from.attemptId, state: from.state, count: steps.count },
    points,
    step: last.name,
    callKey: callKeys({ ...id, step: last.name }, voidCalls).key,
    failure: failureFor(last.name),
    discarded: { bytes: contentsOf(discarded), sealedBy: null },
  }
}

/** As it was kept by `discardStep`. */
export function readDiscarded(bytes: Buffer): { readonly step: string; readonly result: unknown } {
  const { step, result } = JSON.parse(bytes.toString('utf8')) as { step: string; result?: unknown }
  return { step, result }
}

function contentsOf(entry: Entry): Buffer {
  const { name: step, kind } = entry
  return Buffer.from(JSON.stringify({ step, kind, result: resultOf(entry) }), 'utf8')
}

function isCall({ kind }: Entry): boolean {
  return kind === 'foreign' || kind === 'undo_foreign'
}

function failureFor(step: string): Failure {
  const message = `An operator has discarded the result of step ${step}: what became of its call is not known any more.`
  return { code: 'result_discarded', message }
}

function lastIs(entry: Entry): string {
  if (entry.kind === 'undoing') return 'It has begun to undo what it had done.'
  return `The last durable step is ${entry.name}, ${isCall(entry) ? 'a call' : 'a transaction'}.`
}

function followedBy(step: string): string {
  return `The call of step ${step} follows it, and is in doubt: it may have been made upon that result. Find out what became of it, and settle the record with a reply.`
}

function refused(detail: string): OnlyonceError {
  return new OnlyonceError('not_resolvable', { detail })
}
