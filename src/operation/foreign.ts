import { setTimeout as sleep } from 'node:timers/promises'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { provesNothingDone } from '../protect/proof.ts'
import { failureOf, failureWithCause } from '../record/failure.ts'
import type { Failure } from '../record/index.ts'
import { type CallEnd, type CallSite, doubtful, inTime, type Known, learn } from './asking.ts'
import type { CallStep, Found } from './operation.ts'
import { checkedStep, uncheckedStep } from './result-check.ts'
import { voidAfter, voidBefore } from './void-calls.ts'

/**
 * Brings a call to its end, as far as that can be known now. The rule of all of it: a call that may have been sent is
 * asked about first, and is sent again only where the other side does the same key once, and still remembers it.
 */
export async function callForeign<T>(given: CallStep<T>, site: CallSite): Promise<CallEnd> {
  const end = await callToItsEnd(given, site)
  const asked = site.failedFinds.length
  if (end.end === 'in_doubt' && asked > 0) {
    const last = site.failedFinds.at(-1)!
    const times = asked === 1 ? 'once' : `${asked} times`
    const { code, message } = end.failure
    const said = `find was asked in vain, ${times} by this owner. The last time: ${last.code}: ${last.message}`
    return refusedToo({ ...end, failure: { code, message: both(message, said) } }, site)
  }
  return refusedToo(end, site)
}

function refusedToo(end: CallEnd, site: CallSite): CallEnd {
  const refused = site.refusals[0]
  if (end.end !== 'in_doubt' || refused === undefined) return end
  const said = `Evidence about the call does not count, because it does not pass the check of the step: ${refused}`
  const { code, message } = end.failure
  return { ...end, failure: { code, message: both(said, message) } }
}

async function callToItsEnd<T>(given: CallStep<T>, site: CallSite): Promise<CallEnd> {
  const step = checkedStep(given)
  const known: Known = { inDoubt: site.maybeSent, sentHere: false }
  try {
    const short = tooShortFor(step, site)
    if (short !== null) throw short
    const timeoutMs = step.timeoutMs ?? Math.min(LIMITS.callTimeoutMs, site.timeoutMs)
    const before = await voidBefore(step, site, timeoutMs, known)
    if (before !== null) return before
    const end = await bring(step, site, timeoutMs, known)
    return end.end === 'result' ? await voidAfter(uncheckedStep(given), site, timeoutMs, end) : end
  } catch (error) {
    const lost = error instanceof OnlyonceError && error.code === 'lease_lost'
    if (lost || !known.inDoubt) throw error
    // An error that keeps us from asking proves nothing: what may have been sent stays so.
    return doubtful('call_in_doubt', describe(known, error, 'It could not be asked'))
  }
}

/** Why a call cannot be made under the lease of this owner, or null. Another owner, with a longer lease, can make it. */
export function tooShortFor({ timeoutMs = 0 }: CallStep<unknown>, site: CallSite): OnlyonceError | null {
  if (timeoutMs <= site.timeoutMs) return null
  return new OnlyonceError('option_invalid', {
    detail: `timeoutMs of a call is at most two thirds of leaseMs, which is ${site.timeoutMs} here, and this one asks for ${timeoutMs}. Give the call, the route or the worker that runs it a longer leaseMs.`,
  })
}

async function bring<T>(
  step: CallStep<T>,
  site: CallSite,
  timeoutMs: number,
  known: Known,
): Promise<CallEnd> {
  const { idempotent = true, keyLifetimeMs = LIMITS.callKeyLifetimeMs } = step
  let last: unknown
  for (let calls = 0; ; calls += 1) {
    if (known.inDoubt) {
      const truth = await learn(step, site, site.key, timeoutMs)
      if (truth?.status === 'found') return { end: 'result', value: truth.result }
      if (truth?.status === 'pending') return doubtful('call_pending', besides(known, PENDING))
      if (!idempotent) return doubtful('call_in_doubt', describe(known, last))
      if (site.keyAgeMs() + timeoutMs >= keyLifetimeMs)
        return doubtful('call_key_forgotten', besides(known, FORGOTTEN))
      if (!site.mayCall()) return afterDeadline(step, site, truth, known)
    }
    const over = calls > LIMITS.callsMax || (!known.inDoubt && !site.mayCall())
    if (over)
      return known.inDoubt ? doubtful('call_in_doubt', describe(known, last)) : notExecutedBy(last, calls)
    if (calls > 0) await sleep(Math.random() * LIMITS.callBackoffMs * 2 ** calls)
    await site.holdFor(timeoutMs)
    try {
      site.crashPoint('operation.call.before')
      const value = await inTime(timeoutMs, site, site.key, step.call)
      site.crashPoint('operation.call.after')
      return { end: 'result', value }
    } catch (error) {
      const refused = error instanceof OnlyonceError && error.code === 'call_refused'
      // A later call that was not executed says nothing about an earlier one.
      if (!refused && !provesNothingDone(error)) {
        known.inDoubt = true
        known.sentHere = true
        known.why ??= failureWithCause(error)
      }
      const lost = site.lost()
      if (lost !== null) throw lost
      if (refused) return { end: 'refused', error }
      last = error
    }
  }
}

/** Nothing may be sent any more. That nothing was sent is proved only when all that was sent could be seen by now. */
function afterDeadline<T>(
  { visibleWithinMs = LIMITS.callVisibleWithinMs }: CallStep<T>,
  site: CallSite,
  truth: Found<unknown> | null,
  known: Known,
): CallEnd {
  const sentAgeMs = site.sentAgeMs()
  const settled = !known.sentHere && sentAgeMs !== null && sentAgeMs >= visibleWithinMs
  if (truth?.status !== 'not_found' || !settled) return doubtful('call_in_doubt', besides(known, TOO_EARLY))
  return { end: 'not_executed', error: new OnlyonceError('deadline_exceeded') }
}

function notExecutedBy(last: unknown, calls: number): CallEnd {
  return { end: 'not_executed', error: calls === 0 ? new OnlyonceError('deadline_exceeded') : last }
}

/**
 * Why the outcome is not known: how the call ended of which that is not known, and what was heard last. The last word alone would be read as
 * the answer, and may be that of a call which was not executed.
 */
function describe(known: Known, last: unknown, said = 'The last call said'): string {
  if (last === undefined) return besides(known, EARLIER)
  const heard = `${said}: ${saidBy(last)}`
  if (known.why === undefined) return cut(`${EARLIER} ${heard}`)
  return isSame(known.why, failureWithCause(last)) ? cut(heard) : besides(known, heard)
}

function besides({ why }: Known, text: string): string {
  if (why === undefined) return text
  const began = `An earlier call may have been carried out; it said: ${why.code}: ${why.message}`
  return both(began, text)
}

/** Of a call that was not executed its author's reason is told: the usual sentence would be read as one about the request. */
function saidBy(error: unknown): string {
  const { code, message } = failureWithCause(error)
  if (!provesNothingDone(error)) return `${code}: ${message}`
  const { cause } = error as Error
  return cause === undefined ? `${code}.` : `${code}: ${failureOf(cause).message}`
}

/** Both are to be read: a long one does not push the other out. */
function both(first: string, second: string): string {
  return cut(`${first.slice(0, LIMITS.errorMessageLengthMax / 2).replace(/\.?$/, '.')} ${second}`)
}

function isSame(one: Failure, other: Failure): boolean {
  return one.code === other.code && one.message === other.message
}

function cut(text: string): string {
  return text.slice(0, LIMITS.errorMessageLengthMax)
}

const EARLIER = 'An earlier attempt may have made the call, and its outcome is not known.'
const PENDING = 'The other side has not decided yet.'
const FORGOTTEN = 'The other side may have forgotten the key of the call, so it is not made again.'
const TOO_EARLY = 'The deadline is past, so nothing is sent; whether something was sent cannot be told yet.'
