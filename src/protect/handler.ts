import { randomUUID } from 'node:crypto'
import { OnlyonceError, type Proof } from '../errors.ts'
import { failureOf } from '../failure.ts'
import { LIMITS } from '../limits.ts'
import type { CallSignals } from '../observe/index.ts'
import type { Claimant, Decision, Failure, Reply, State } from '../record/index.ts'
import { Deadline } from '../retry.ts'
import type { ClaimRequest, CrashPoint, Owned, Store } from '../store/contract.ts'
import { Heartbeat } from './heartbeat.ts'
import { refuseNewWork } from './lapsed.ts'
import { claimsNothingDone, inDoubt, proveOr, releaseProved, unproved } from './proof.ts'
import type { Running } from './running.ts'
import { type Outcome, outcomeOf, type TransactionRequest } from './transaction.ts'

/** Work whose effects are anywhere, with everything that decides about it. */
export interface HandlerRequest
  extends Pick<
    TransactionRequest,
    'id' | 'owner' | 'fingerprint' | 'trace' | 'matches' | 'lapsed' | 'retention_ms' | 'deadline_ms'
  > {
  readonly lease_ms: number
  readonly in_progress_max_ms: number
  /** How long the caller waits for the reply to be saved. Not cut by a deadline of the client: that bounds the start. */
  readonly save_wait_ms: number
  /** Its author says that running it again does no harm: then a crash or a throw makes it retryable. */
  readonly rerunnable: boolean
}

/** What the work of a handler is given. */
export interface HandlerContext {
  /** Aborted when the record has another owner, or the time for it is over: stop, nothing you do is kept. */
  readonly signal: AbortSignal
  /** Rises with every owner. Pass it on to whatever can refuse a late writer. */
  readonly fence: number
}

/** How work ended, as it is to be stored. */
export type WorkEnd =
  | { readonly end: 'reply'; readonly reply: Reply }
  /** It threw. `reply` is what stands for that from now on. */
  | { readonly end: 'threw'; readonly error: unknown; readonly reply: Reply }
  /** It is proved that nothing happened. */
  | { readonly end: 'not_executed'; readonly error: unknown }

/**
 * Claim, run, store: for work that no transaction can hold. A crash inside it means that nobody knows; that is
 * what `unknown` says.
 */
export async function runHandler<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  work: (context: HandlerContext) => Promise<WorkEnd>,
  running: Running<Tx>,
  crashPoint: CrashPoint,
  signals: CallSignals,
): Promise<Outcome> {
  const { id, owner, fingerprint, trace, lapsed } = request
  // The claim decides by writing, and a key that has expired must not leave a trace: in this rare case, look first.
  if (lapsed !== null) refuseNewWork(lapsed, (await store.look(id))?.record.state ?? 'none')
  const claimant: Claimant = { attempt_id: randomUUID(), owner, fingerprint, trace }
  crashPoint('handler.claim.before')
  const { decision, fresh } = await claim(store, request, claimant)
  crashPoint('handler.claim.after')
  signals.decided(decision)
  if (decision.kind !== 'run') return outcomeOf(decision)
  const owned: Owned = { id, fence: decision.record.fence, attempt_id: claimant.attempt_id }
  if (fresh.passed) await confirm(store, request, owned)
  let working = true
  const heartbeat = new Heartbeat(store, owned, request, () => {
    // When the work is done the save tells: a beat that overtakes its answer finds no owner either.
    if (working) signals.leaseLost()
  })
  if (!running.begin(owned, heartbeat)) {
    heartbeat.stop()
    const closed = new OnlyonceError('closed')
    // Best effort: the store may be closed by now, and then the lease ends by itself.
    await store.release(owned, failureOf(closed), request.retention_ms).catch(() => {})
    throw closed
  }
  const over = () => {
    running.end(owned)
    heartbeat.stop()
  }
  let end: WorkEnd
  try {
    crashPoint('handler.work.before')
    end = await work(new Ownership(owned.fence, heartbeat))
    working = false
    crashPoint('handler.work.after')
  } catch (error) {
    over()
    // The work has begun, and nothing was stored of it.
    throw claimsNothingDone(error) ? inDoubt(error) : error
  }
  const saving = save(store, request, { owned, from: decision.from }, end, crashPoint, signals)
  const proof = await inTime(running.saving(saving.finally(over)), request.save_wait_ms)
  if (end.end === 'reply') return { outcome: 'executed', reply: end.reply }
  throw answerOf(end, proof, request.rerunnable)
}

/**
 * What the caller hears of work that threw. An error of ours that comes out of the work, such as that of a call inside it, says
 * that its own request changed nothing; the work around it has begun, and is stored as failed.
 */
function answerOf(
  end: Exclude<WorkEnd, { end: 'reply' }>,
  proof: Proof | null,
  rerunnable: boolean,
): unknown {
  if (end.end === 'not_executed') return proveOr(end.error, proof, 'not_applied')
  if (!claimsNothingDone(end.error)) return end.error
  return unproved(end.error, rerunnable ? 'unfinished' : 'handler_failed')
}

/** The caller waits for the save no longer than for anything else; the save goes on without it, for the next to find. */
function inTime<T>(saved: Promise<T>, max_ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new OnlyonceError('outcome_unknown'))
    const timer = setTimeout(late, Math.min(max_ms, LIMITS.timer_max_ms))
    saved.then(resolve, reject).then(() => clearTimeout(timer))
  })
}

/** A class, because an object with a getter of its own is made anew, getter and all, for each request. */
class Ownership<Tx> implements HandlerContext {
  readonly fence: number
  readonly #heartbeat: Heartbeat<Tx>

  constructor(fence: number, heartbeat: Heartbeat<Tx>) {
    this.fence = fence
    this.#heartbeat = heartbeat
  }

  get signal(): AbortSignal {
    return this.#heartbeat.signal
  }
}

/**
 * A claim whose answer was lost may have been made. It is asked again under the same attempt id, at least once, so
 * that our own claim is not taken for another's. Whoever gets no answer in the end gives back what he may have.
 *
 * `fresh` runs out after a third of the lease, counted from before the claim was sent.
 */
async function claim<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  claimant: Claimant,
): Promise<{ readonly decision: Decision; readonly fresh: Deadline }> {
  const deadline = new Deadline(Math.min(request.deadline_ms, LIMITS.claim_max_ms))
  for (let tries = 0; ; tries += 1) {
    const fresh = new Deadline(request.lease_ms / 3)
    try {
      return { decision: await store.claim(claimOf(request, claimant)), fresh }
    } catch (error) {
      const unanswered = error instanceof OnlyonceError && error.code === 'store_unavailable'
      if (unanswered && (tries === 0 || (await deadline.backOff(tries)))) continue
      if (unanswered || tries > 0) void giveBack(store, request, claimant)
      throw error
    }
  }
}

function claimOf({ id, matches, lease_ms, rerunnable }: HandlerRequest, claimant: Claimant): ClaimRequest {
  return { id, claimant, matches, lease_ms, takeover: rerunnable ? 'resume' : 'doubt' }
}

/** The answer was long on its way, and the lease has been running: work must not begin after its end. */
async function confirm<Tx>(store: Store<Tx>, request: HandlerRequest, owned: Owned): Promise<void> {
  try {
    await store.extend(owned, request.lease_ms)
  } catch (error) {
    void giveBack(store, request, owned)
    throw error
  }
}

/**
 * The caller was told that its request started nothing. A claim of ours that stands all the same would be taken for a crash
 * when its lease is over: release it as soon as the store is there again. Best effort.
 */
async function giveBack<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  { attempt_id }: { readonly attempt_id: string },
): Promise<void> {
  const deadline = new Deadline(Math.min(request.lease_ms, LIMITS.save_max_ms))
  for (let tries = 0; await deadline.backOff(tries); tries += 1) {
    try {
      const seen = await store.look(request.id)
      if (seen?.record.attempt_id !== attempt_id || seen.record.state !== 'in_progress') return
      const owned = { id: request.id, fence: seen.record.fence, attempt_id }
      return await store.release(owned, CLAIM_UNANSWERED, request.retention_ms)
    } catch {}
  }
}

const CLAIM_UNANSWERED: Failure = {
  code: 'claim_unanswered',
  message: 'The answer to the claim was lost, and this attempt did nothing.',
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
): Promise<Proof | null> {
  const deadline = new Deadline(LIMITS.save_max_ms)
  for (let tries = 0; ; tries += 1) {
    try {
      crashPoint('handler.save.before')
      const proof = await saveOnce(store, request, claimed, end)
      crashPoint('handler.save.after')
      return proof
    } catch (error) {
      if (error instanceof OnlyonceError && error.code === 'lease_lost') {
        signals.leaseLost()
        throw error
      }
      if (!(await deadline.backOff(tries))) throw new OnlyonceError('outcome_unknown', { cause: error })
    }
  }
}

/** What the attempt owns, and what was there before. */
interface Claimed {
  readonly owned: Owned
  readonly from: State | 'none'
}

async function saveOnce<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  { owned, from }: Claimed,
  end: WorkEnd,
): Promise<Proof | null> {
  const { retention_ms, rerunnable } = request
  if (end.end === 'not_executed') {
    const before = { from, rerunnable, durable: false }
    return await releaseProved(store, owned, failureOf(end.error), retention_ms, before)
  }
  if (end.end === 'threw' && rerunnable) await store.release(owned, failureOf(end.error), retention_ms)
  else await store.complete(owned, end.reply, retention_ms)
  return null
}
