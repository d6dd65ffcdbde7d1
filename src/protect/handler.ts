import { randomUUID } from 'node:crypto'
import { OnlyonceError, type Proof } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { CallSignals } from '../observe/index.ts'
import { failureOf } from '../record/failure.ts'
import type { Claimant, Failure, RecordId, Reply, State } from '../record/index.ts'
import { failureOfReply } from '../record/value.ts'
import type { CrashPoint, Owned, Store } from '../store/contract.ts'
import { claim, confirm, giveBack, kindOf } from './handler-claim.ts'
import { Heartbeat } from './heartbeat.ts'
import { inTime, leaveInDoubt, NO_ANSWER, TIMED_OUT } from './in-time.ts'
import { refuseNewWork } from './lapsed.ts'
import { claimsNothingDone, forgetOrRelease, inDoubt, proveOr, releaseProved, unproved } from './proof.ts'
import { handlerKey } from './recover.ts'
import type { Recovery } from './recovery.ts'
import type { Running } from './running.ts'
import { type Outcome, outcomeOf, type TransactionRequest } from './transaction.ts'

/** Work whose effects are anywhere, with everything that decides about it. */
export interface HandlerRequest
  extends Pick<
    TransactionRequest,
    'id' | 'owner' | 'fingerprint' | 'trace' | 'matches' | 'lapsed' | 'retentionMs' | 'deadlineMs'
  > {
  readonly leaseMs: number
  /** How long the owner is presumed alive, and how long the caller waits for the work. */
  readonly inProgressMaxMs: number
  /** How long the caller waits for the reply to be saved. Not cut by a deadline of the client: that bounds the start. */
  readonly saveWaitMs: number
  /** Its author says that running it again does no harm: then a crash or a throw makes it retryable. */
  readonly rerunnable: boolean
}

/** What the work of a handler is given. */
export interface HandlerContext {
  /** Aborted when the record has another owner, or the time for it is over: stop. */
  readonly signal: AbortSignal
  /**
   * The same on every attempt, in every process. Pass it on to the other side: `recover` is asked with it whether the work
   * took effect.
   */
  readonly derivedKey: string
  /** Rises with every owner. Pass it on to the store that can refuse a late writer. */
  readonly fence: number
}

/** How work ended, as it is to be stored. */
export type WorkEnd =
  /** `thrown`: a framework has made the reply of what the work threw, as far as that is known. */
  | { readonly end: 'reply'; readonly reply: Reply; readonly thrown?: { readonly error: unknown } | null }
  /** It threw. `reply` is what stands for that from now on. */
  | { readonly end: 'threw'; readonly error: unknown; readonly reply: Reply }
  /** The work says that nothing happened; `byStatus`: only the rules of its route do, which let a reply with such a status run again. */
  | { readonly end: 'not_executed'; readonly error: unknown; readonly byStatus?: boolean }
  /** The same, and the request itself is wrong: a corrected one may have its key. */
  | { readonly end: 'invalid'; readonly error: OnlyonceError }

/**
 * Claim, run, store: for work that no transaction can hold. A crash inside it means that its outcome is not known; that is
 * what `unknown` says.
 */
export async function runHandler<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  work: (context: HandlerContext) => Promise<WorkEnd>,
  running: Running<Tx>,
  recovery: Recovery<Tx>,
  crashPoint: CrashPoint,
  signals: CallSignals,
): Promise<Outcome> {
  const { id, owner, fingerprint, trace, lapsed } = request
  // The claim decides by writing, and a key that has expired must not leave a trace: in this rare case, look first.
  if (lapsed !== null) refuseNewWork(lapsed, (await store.look(id))?.record.state ?? 'none')
  const kind = kindOf(request, recovery.recovers.get(id.operation) !== undefined)
  const claimant: Claimant = { kind, attemptId: randomUUID(), owner, fingerprint, trace }
  crashPoint('handler.claim.before')
  let { decision, fresh } = await claim(store, request, claimant, running, recovery.graceMs)
  crashPoint('handler.claim.after')
  signals.decided(decision)
  // A look may free the record, or find its reply; the record says what it came to.
  if (await recovery.attend(id, decision)) {
    ;({ decision, fresh } = await claim(store, request, claimant, running, recovery.graceMs))
    signals.decided(decision)
  }
  if (decision.kind !== 'run') return outcomeOf(decision)
  const owned: Owned = { id, fence: decision.record.fence, attemptId: claimant.attemptId }
  const effectsPossible = request.rerunnable || decision.effectsPossible
  if (fresh.passed) await confirm(store, request, owned, running)
  let working = true
  const heartbeat = new Heartbeat(store, owned, request, () => {
    // When the work is done the save tells: a beat that overtakes its answer finds no owner either.
    if (working) signals.leaseLost()
  })
  if (!running.begin(owned, heartbeat, 'handlers')) {
    heartbeat.stop()
    const closed = new OnlyonceError('closed')
    const failure = failureOf(closed)
    const again = () => giveBack(store, request, owned, running, failure)
    await store.release(owned, failure, request.retentionMs, effectsPossible).catch(again)
    throw closed
  }
  const over = () => {
    running.end(owned)
    heartbeat.stop()
  }
  const claimed = { owned, from: decision.from, effectsPossible }
  const ended = endOfWork(work, new Ownership(owned, heartbeat), crashPoint)
  let end: WorkEnd
  try {
    // Work that never settles would keep its caller, and its duplicates in this process, waiting for ever.
    const { inProgressMaxMs: maxMs } = request
    end = await inTime(ended, maxMs, NO_ANSWER, (timer) => running.waitsBy(owned, timer))
    working = false
  } catch (error) {
    over()
    if (error instanceof OnlyonceError && error.cause === TIMED_OUT) {
      void running.saving(leaveInDoubt(store, owned, recovery.graceMs, heartbeat, request.rerunnable))
      // No caller waits for it any more. Where it cannot be stored, the record says what it said before.
      ended
        .then((late) => running.saving(saveLate(store, request, claimed, late, crashPoint, signals)))
        .catch(() => {})
    }
    // The work has begun, and nothing was stored of it.
    throw claimsNothingDone(error) ? inDoubt(error) : error
  }
  const saving = save(store, request, claimed, end, crashPoint, signals)
  const saved = await inTime(running.saving(saving.finally(over)), request.saveWaitMs, {})
  if (end.end === 'reply') return { outcome: 'executed', reply: end.reply }
  throw answerOf(end, saved, request.rerunnable)
}

/**
 * What the caller hears of work that threw. An error of ours that comes out of the work, such as that of a call inside it, says
 * that its own request changed nothing; the work around it has begun, and is stored as failed.
 */
function answerOf(
  end: Exclude<WorkEnd, { end: 'reply' }>,
  { proof, invalid }: Saved,
  rerunnable: boolean,
): unknown {
  if (end.end === 'invalid') return invalid ?? end.error
  if (end.end === 'not_executed') return proveOr(end.error, proof ?? null, 'not_applied')
  if (!claimsNothingDone(end.error)) return end.error
  return unproved(end.error, rerunnable ? 'unfinished' : 'handler_failed')
}

async function endOfWork(
  work: (context: HandlerContext) => Promise<WorkEnd>,
  context: HandlerContext,
  crashPoint: CrashPoint,
): Promise<WorkEnd> {
  crashPoint('handler.work.before')
  const end = await work(context)
  crashPoint('handler.work.after')
  return end
}

/**
 * A reply that comes after the handler's time is good for every retry, as long as no operator or `recover` has decided meanwhile. An
 * error is not, nor what a framework has answered to it: the signal was aborted, and it says no more than that.
 */
async function saveLate<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  claimed: Claimed,
  end: WorkEnd,
  crashPoint: CrashPoint,
  signals: CallSignals,
): Promise<void> {
  const failed = end.end === 'threw' || (end.end === 'reply' && end.reply.status >= 500)
  if (!failed) await save(store, request, claimed, end, crashPoint, signals)
}

/** A class, because an object with a getter of its own is made anew, getter and all, for each request. */
class Ownership<Tx> implements HandlerContext {
  readonly fence: number
  readonly #id: RecordId
  readonly #heartbeat: Heartbeat<Tx>

  constructor({ id, fence }: Owned, heartbeat: Heartbeat<Tx>) {
    this.fence = fence
    this.#id = id
    this.#heartbeat = heartbeat
  }

  get derivedKey(): string {
    return handlerKey(this.#id)
  }

  get signal(): AbortSignal {
    return this.#heartbeat.signal
  }
}

/**
 * The work is done, and only its record is missing: go on trying, with the lease kept alive meanwhile. What cannot
 * be saved in the end is not known to anybody, and that is what the caller hears.
 */
async function save<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  claimed: Claimed,
  end: WorkEnd,
  crashPoint: CrashPoint,
  signals: CallSignals,
): Promise<Saved> {
  const deadline = new Deadline(LIMITS.saveMaxMs)
  for (let tries = 0; ; tries += 1) {
    try {
      crashPoint('handler.save.before')
      const saved = await saveOnce(store, request, claimed, end)
      crashPoint('handler.save.after')
      const failed = failedFor(request, end)
      if (failed !== null) signals.failed(failed.failure, failed.status)
      return saved
    } catch (error) {
      if (error instanceof OnlyonceError && error.code === 'lease_lost') {
        signals.leaseLost()
        throw error
      }
      if (!(await deadline.backOff(tries))) throw new OnlyonceError('outcome_unknown', { cause: error })
    }
  }
}

/** Work that failed and is stored as completed: what it did before is not known, and no worker comes back to it. */
function failedFor(
  { rerunnable }: HandlerRequest,
  end: WorkEnd,
): { readonly failure: Failure; readonly status: number } | null {
  if (end.end === 'threw' && !rerunnable) return { failure: failureOf(end.error), status: end.reply.status }
  if (end.end !== 'reply') return null
  const failure = failureOfReply(end.reply, 'handler')
  if (failure === null) return null
  const { thrown } = end
  return { failure: thrown ? failureOf(thrown.error) : failure, status: end.reply.status }
}

/** What the attempt owns, and what was there before. */
interface Claimed {
  readonly owned: Owned
  readonly from: State | 'none'
  readonly effectsPossible: boolean
}

/** What the write has shown beside that it was done. */
interface Saved {
  /** That nothing was executed under the key. */
  readonly proof?: Proof | null
  /** What is told of a request that is wrong: whether its key is free. */
  readonly invalid?: OnlyonceError
}

async function saveOnce<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  { owned, from, effectsPossible }: Claimed,
  end: WorkEnd,
): Promise<Saved> {
  const { retentionMs, rerunnable } = request
  if (end.end === 'invalid') {
    return { invalid: await forgetOrRelease(store, owned, end.error, retentionMs, effectsPossible) }
  }
  if (end.end === 'not_executed') {
    const before = { from, effectsPossible: effectsPossible || end.byStatus === true, durable: false }
    return { proof: await releaseProved(store, owned, failureOf(end.error), retentionMs, before) }
  }
  if (end.end === 'threw' && rerunnable) await store.release(owned, failureOf(end.error), retentionMs)
  else await store.complete(owned, end.reply, retentionMs)
  return {}
}
