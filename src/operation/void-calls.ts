/**
 * Calls that an operator has declared void, so that their step is tried under a new key. The operator may be wrong, and the
 * other side may be late: what is found of them counts, before the new call is made and after it.
 */
import type { Failure } from '../record/index.ts'
import { type CallEnd, type CallSite, doubtful, type Known, learn } from './asking.ts'
import type { CallStep, Found } from './operation.ts'

/** Asked before anything is sent under the new key. Null: none of them can be seen, so the step may go on. */
export async function voidBefore<T>(
  step: CallStep<T>,
  site: CallSite,
  timeoutMs: number,
  { inDoubt }: Known,
): Promise<CallEnd | null> {
  for (const key of site.voidKeys) {
    const truth = await learn(step, site, key, timeoutMs)
    if (truth?.status === 'found')
      return inDoubt ? happened('MAYBE', null, site.key) : { end: 'result', value: truth.result }
    const open = openQuestion(step, truth)
    // What is in doubt about the call that may have been made stays in doubt; one that was not begun is not.
    if (open !== null) return inDoubt ? open : { ...open, about: key }
  }
  return null
}

/** Asked again when the new call has its result: what was late may be there by now. The result is kept in any case. */
export async function voidAfter<T>(
  step: CallStep<T>,
  site: CallSite,
  timeoutMs: number,
  end: Extract<CallEnd, { end: 'result' }>,
): Promise<CallEnd> {
  for (const key of site.voidKeys) {
    // A processor that cannot be asked now was asked before. Evidence that comes later finds the decision, and raises the alarm.
    const truth = await learn(step, site, key, timeoutMs).catch(() => null)
    if (truth?.status === 'found') return happened('MADE', { value: end.value }, null)
  }
  return end
}

function openQuestion<T>(
  { find }: CallStep<T>,
  truth: Found<unknown> | null,
): Extract<CallEnd, { end: 'in_doubt' }> | null {
  if (truth?.status === 'pending') return doubtful('call_pending', PENDING)
  // Where there is no lookup, evidence and the operator's word are all that there is.
  return truth === null && find !== undefined ? doubtful('call_in_doubt', UNASKED) : null
}

const PENDING =
  'The other side has not decided yet about an earlier call that was declared void, or what was told about it is unclear.'
const UNASKED = 'The other side could not be asked about an earlier call that was declared void.'

function happened(
  other: keyof typeof HAPPENED,
  made: { readonly value: unknown } | null,
  waitsFor: string | null,
): Extract<CallEnd, { end: 'void_happened' }> {
  const failure: Failure = { code: 'void_call_happened', message: HAPPENED[other] }
  return { end: 'void_happened', failure, made, waitsFor }
}

const HAPPENED = {
  MADE: 'A call that was declared void has happened, and so has the call that was made in its place.',
  MAYBE: 'A call that was declared void has happened, and the call in its place may have been made.',
} as const
