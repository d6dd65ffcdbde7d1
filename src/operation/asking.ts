/** How a call is made, and how the other side and the evidence are asked what became of it. */
import { OnlyonceError } from '../core/errors.ts'
import { failureWithCause } from '../record/failure.ts'
import type { Failure } from '../record/index.ts'
import type { CrashPoint } from '../store/contract.ts'
import type { CallContext, CallStep, Found } from './operation.ts'
import { checkResult } from './result-check.ts'

/** What is known about the place that a call is made from. */
export interface CallSite {
  readonly key: string
  /** The keys of earlier calls of the step, which an operator has declared void. None of them is ever used again. */
  readonly voidKeys: readonly string[]
  /** An earlier attempt may have made this call. */
  readonly maybeSent: boolean
  /** The time for the call, where its step does not say so. */
  readonly timeoutMs: number
  readonly crashPoint: CrashPoint
  /** Why the record has another owner, or null. */
  lost(): unknown
  /** Calls back when it has; what is returned takes that back. */
  onLost(tell: (reason: unknown) => void): () => void
  /** Since the commit before the first attempt: the other side's memory of the key began no later. */
  keyAgeMs(): number
  /** Since the last moment at which an earlier owner may have sent the call; null where there was none. */
  sentAgeMs(): number | null
  /** False after the deadline of the request: then it is only looked. */
  mayCall(): boolean
  /** Makes sure that the lease outlasts the call. Throws where the record has another owner. */
  holdFor(ms: number): Promise<void>
  /** What others have told about the call that has this key. */
  evidence(callKey: string): Promise<{ readonly result: unknown; readonly receivedAt: string } | null>
  /** What was told then counts no more, and other evidence may take its place. */
  refuseEvidence(callKey: string, receivedAt: string): Promise<void>
  /** Why evidence was refused here, for operators. */
  readonly refusals: string[]
  /** How `find` failed here, each time that it did, for operators. */
  readonly failedFinds: Failure[]
}

export type CallEnd =
  | { readonly end: 'result'; readonly value: unknown }
  /** It is proved that nothing happened. */
  | { readonly end: 'not_executed'; readonly error: unknown }
  /** About this call, or about an earlier one, where this one was not begun. */
  | { readonly end: 'in_doubt'; readonly failure: Failure; readonly about?: string }
  /** A call that was declared void has happened, and another one may have, or has: that is `made`. */
  | {
      readonly end: 'void_happened'
      readonly failure: Failure
      readonly made: { readonly value: unknown } | null
      /** The key of the call that may have been made. */
      readonly waitsFor: string | null
    }
  /** The other side refuses for good. */
  | { readonly end: 'refused'; readonly error: unknown }

/** What is known about a call while it is brought to its end. */
export interface Known {
  inDoubt: boolean
  /** This attempt has sent it, and does not know how it ended. */
  sentHere: boolean
  /** How the first call of this attempt ended of which that is not known. What later ones say does not answer it. */
  why?: Failure
}

/** What is known about a call that may have been made: by others first, for they come unasked and cost nothing. */
export async function learn<T>(
  step: CallStep<T>,
  site: CallSite,
  callKey: string,
  timeoutMs: number,
): Promise<Found<unknown> | null> {
  site.crashPoint('operation.evidence.before')
  const evidence = await evidenceThatPasses(step, site, callKey, timeoutMs)
  site.crashPoint('operation.evidence.after')
  if (evidence !== null) return evidence
  const { find } = step
  if (find === undefined) return null
  await site.holdFor(timeoutMs)
  try {
    site.crashPoint('operation.find.before')
    const found: unknown = await inTime(timeoutMs, site, callKey, find)
    site.crashPoint('operation.find.after')
    return asFound(found)
  } catch (error) {
    site.failedFinds.push(failureWithCause(error))
    // No way to ask: that is not "not found".
    return null
  }
}

/** An answer of another form says nothing: taken for "not found", it would allow a second call. */
function asFound(answer: unknown): Found<unknown> {
  const { status } = Object(answer) as Partial<Found<unknown>>
  if (status === 'found' || status === 'not_found' || status === 'pending') return answer as Found<unknown>
  const detail = 'find has to give back { status }: found, not_found or pending. It gave something else.'
  throw new OnlyonceError('outcome_unknown', { detail })
}

/**
 * Null where there is none, or none of the form that the step expects: that would be its durable result for ever. About a call that was
 * declared void it stands all the same: the call may have happened, and no new one is sent while that is unclear.
 */
async function evidenceThatPasses<T>(
  step: CallStep<T>,
  site: CallSite,
  callKey: string,
  timeoutMs: number,
): Promise<Found<unknown> | null> {
  const told = await site.evidence(callKey)
  if (told === null) return null
  if (step.result === undefined) return { status: 'found', result: told.result }
  await site.holdFor(timeoutMs)
  const checked = await inTime(timeoutMs, site, callKey, () => checkResult(step, told.result))
  if ('value' in checked) return { status: 'found', result: checked.value }
  site.refusals.push(checked.refused)
  if (site.voidKeys.includes(callKey)) return { status: 'pending' }
  // It would be looked at again at once, without end, if it were still there.
  site.crashPoint('operation.refuse_evidence.before')
  await site.refuseEvidence(callKey, told.receivedAt)
  site.crashPoint('operation.refuse_evidence.after')
  return null
}

export function doubtful(code: string, message: string): Extract<CallEnd, { end: 'in_doubt' }> {
  return { end: 'in_doubt', failure: { code, message } }
}

/** Runs a call, and stops waiting for it when its time is over, whether or not it listens to its signal. */
export async function inTime<T>(
  timeoutMs: number,
  { onLost }: CallSite,
  key: string,
  call: (context: CallContext) => Promise<T>,
): Promise<T> {
  const over = new AbortController()
  return await new Promise<T>((resolve, reject) => {
    const stop = (reason: unknown) => {
      over.abort(reason)
      reject(reason)
    }
    const timer = setTimeout(
      () => stop(new OnlyonceError('outcome_unknown', { detail: 'The call was not answered in time.' })),
      timeoutMs,
    )
    const forget = onLost(stop)
    const called = async () => await call({ key, signal: over.signal })
    called()
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer)
        forget()
      })
  })
}
