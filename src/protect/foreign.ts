import { setTimeout as sleep } from 'node:timers/promises'
import { OnlyonceError } from '../errors.ts'
import { failureOf } from '../failure.ts'
import { LIMITS } from '../limits.ts'
import type { Failure } from '../record/index.ts'
import type { CrashPoint } from '../store/contract.ts'
import type { CallContext, ForeignStep, Found } from './operation.ts'
import { provesNothingDone } from './proof.ts'

/** What is known about the place that a call is made from. */
export interface CallSite {
  readonly key: string
  /** An earlier attempt may have made this call. */
  readonly maybe_sent: boolean
  /** The time for the call, where its step does not say so. */
  readonly timeout_ms: number
  readonly crashPoint: CrashPoint
  /** Why the record has another owner, or null. */
  lost(): unknown
  /** Calls back when it has; what is returned takes that back. */
  onLost(tell: (reason: unknown) => void): () => void
  /** Since the commit before the first attempt: the other side's memory of the key began no later. */
  keyAgeMs(): number
  /** Since the last moment at which an earlier owner may have sent the call; null where nobody was there. */
  sentAgeMs(): number | null
  /** False after the deadline of the request: then it is only looked. */
  mayCall(): boolean
  /** Makes sure that the lease outlasts the call. Throws where the record has another owner. */
  holdFor(ms: number): Promise<void>
  /** What others have told about the call. */
  evidence(): Promise<{ readonly result: unknown } | null>
}

export type CallEnd =
  | { readonly end: 'result'; readonly value: unknown }
  /** It is proved that nothing happened. */
  | { readonly end: 'not_executed'; readonly error: unknown }
  | { readonly end: 'in_doubt'; readonly failure: Failure }
  /** The other side refuses for good. */
  | { readonly end: 'refused'; readonly error: unknown }

/**
 * Brings a call to its end, as far as that can be known now. The rule of all of it: whatever may have been sent is
 * asked about first, and is sent again only where the other side does the same key once, and still remembers it.
 */
export async function callForeign<T>(step: ForeignStep<T>, site: CallSite): Promise<CallEnd> {
  const known: Known = { in_doubt: site.maybe_sent, sent_here: false }
  try {
    return await bring(step, site, known)
  } catch (error) {
    const lost = error instanceof OnlyonceError && error.code === 'lease_lost'
    if (lost || !known.in_doubt) throw error
    // Whatever keeps us from asking, what may have been sent stays so.
    return doubtful('call_in_doubt', describe(error, 'It could not be asked'))
  }
}

/** What is known about a call while it is brought to its end. */
interface Known {
  in_doubt: boolean
  /** This attempt has sent it, and does not know how it ended. */
  sent_here: boolean
}

async function bring<T>(step: ForeignStep<T>, site: CallSite, known: Known): Promise<CallEnd> {
  const { dedupes = true, key_lifetime_ms = LIMITS.call_key_lifetime_ms } = step
  const timeout_ms = step.timeout_ms ?? Math.min(LIMITS.call_timeout_ms, site.timeout_ms)
  if (timeout_ms > site.timeout_ms) {
    throw new OnlyonceError('option_invalid', {
      detail: `timeout_ms of a call is at most two thirds of lease_ms: ${site.timeout_ms}.`,
    })
  }
  let last: unknown
  for (let calls = 0; ; calls += 1) {
    if (known.in_doubt) {
      const truth = await learn(step, site, timeout_ms)
      if (truth?.status === 'found') return { end: 'result', value: truth.result }
      if (truth?.status === 'pending') return doubtful('call_pending', 'The other side has not decided yet.')
      if (!dedupes) return doubtful('call_in_doubt', describe(last))
      if (site.keyAgeMs() + timeout_ms >= key_lifetime_ms) return doubtful('call_key_forgotten', FORGOTTEN)
      if (!site.mayCall()) return afterDeadline(step, site, truth, known)
    }
    const over = calls > LIMITS.calls_max || (!known.in_doubt && !site.mayCall())
    if (over) return known.in_doubt ? doubtful('call_in_doubt', describe(last)) : notExecutedBy(last, calls)
    if (calls > 0) await sleep(Math.random() * LIMITS.call_backoff_ms * 2 ** calls)
    await site.holdFor(timeout_ms)
    try {
      site.crashPoint('operation.call.before')
      const value = await inTime(timeout_ms, site, step.call)
      site.crashPoint('operation.call.after')
      return { end: 'result', value }
    } catch (error) {
      const refused = error instanceof OnlyonceError && error.code === 'call_refused'
      // A later call that was not executed says nothing about an earlier one.
      if (!refused && !provesNothingDone(error)) {
        known.in_doubt = true
        known.sent_here = true
      }
      const lost = site.lost()
      if (lost !== null) throw lost
      if (refused) return { end: 'refused', error }
      last = error
    }
  }
}

/** What is known about a call that may have been made: by others first, for they come unasked and cost nothing. */
async function learn<T>(
  { find }: ForeignStep<T>,
  site: CallSite,
  timeout_ms: number,
): Promise<Found<unknown> | null> {
  site.crashPoint('operation.evidence.before')
  const evidence = await site.evidence()
  site.crashPoint('operation.evidence.after')
  if (evidence !== null) return { status: 'found', result: evidence.result }
  if (find === undefined) return null
  await site.holdFor(timeout_ms)
  try {
    site.crashPoint('operation.find.before')
    const found = await inTime(timeout_ms, site, find)
    site.crashPoint('operation.find.after')
    return found
  } catch {
    // Nobody there to ask: that is not "not found".
    return null
  }
}

/** Nothing may be sent any more. That nothing was sent is proved only when whatever was sent could be seen by now. */
function afterDeadline<T>(
  { settle_ms = LIMITS.call_settle_ms }: ForeignStep<T>,
  site: CallSite,
  truth: Found<unknown> | null,
  { sent_here }: Known,
): CallEnd {
  const sent_age_ms = site.sentAgeMs()
  const settled = !sent_here && sent_age_ms !== null && sent_age_ms >= settle_ms
  if (truth?.status !== 'not_found' || !settled) return doubtful('call_in_doubt', TOO_EARLY)
  return { end: 'not_executed', error: new OnlyonceError('deadline_exceeded') }
}

function notExecutedBy(last: unknown, calls: number): CallEnd {
  return { end: 'not_executed', error: calls === 0 ? new OnlyonceError('deadline_exceeded') : last }
}

function doubtful(code: string, message: string): CallEnd {
  return { end: 'in_doubt', failure: { code, message } }
}

function describe(error: unknown, said = 'The last call said'): string {
  if (error === undefined) return 'An earlier attempt may have made the call, and nobody can tell.'
  const { code, message } = failureOf(error)
  return `${said}: ${code}: ${message}`.slice(0, LIMITS.error_message_length_max)
}

const FORGOTTEN = 'The other side may have forgotten the key of the call, so it is not made again.'
const TOO_EARLY = 'The deadline is past, so nothing is sent; whether something was sent cannot be told yet.'

/** Runs a call, and stops waiting for it when its time is over, whether or not it listens to its signal. */
async function inTime<T>(
  timeout_ms: number,
  { key, onLost }: CallSite,
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
      timeout_ms,
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
