/** How the record of an operation is left when an attempt is over, and what its caller hears then. */
import { OnlyonceError, type Proof } from '../core/errors.ts'
import { keptInvalid } from '../core/invalid.ts'
import { LIMITS } from '../core/limits.ts'
import type { CallSignals } from '../observe/index.ts'
import { claimsNothingDone, inDoubt, proveOr, unproved } from '../protect/proof.ts'
import { busyFor, type Outcome } from '../protect/transaction.ts'
import { failureOf } from '../record/failure.ts'
import { type Failure, isFree, lookedAtIn, type Reply } from '../record/index.ts'
import type { OperationAttempt } from './attempt.ts'
import type { Hold } from './hold.ts'
import type { Steps } from './steps.ts'
import type { CallInDoubt, RunEnd } from './stop.ts'

/** Leaves the record as the attempt ended. What cannot be written now shows when the lease is over. */
export async function conclude<Tx>(
  hold: Hold<Tx>,
  steps: Steps,
  end: RunEnd,
  unproved: boolean,
  signals: CallSignals,
): Promise<RunEnd> {
  switch (end.why) {
    case 'completed':
    case 'conflict':
    case 'busy':
      return end
    case 'lost':
      return end
    case 'doubt':
      await keep(hold, steps)
      return await doubt(hold, end.failure, end.call, signals)
    case 'parked':
      await keep(hold, steps)
      await hold.park(end.failure, end.call)
      return end
    case 'failed': {
      await keep(hold, steps)
      const left = await leave(hold, steps, stoppedBy(end.error), unproved, signals)
      // Doubt and parking are told as such, with the same reason.
      if (left.why === 'left') signals.stopped(reasonFor(end.error), steps.at)
      return left.why === 'left'
        ? { why: 'failed', error: toldAs(end.error, hold, left.proof) }
        : told(end, left)
    }
    case 'invalid':
      return await giveUp(hold, end.error)
    case 'not_now': {
      await keep(hold, steps)
      const failure = {
        code: `http_${end.reply.status}`,
        message: `The operation answered with the status ${end.reply.status}.`,
      }
      const left = await leave(hold, steps, failure, unproved, signals)
      return left.why === 'conflict' ? left : end
    }
    default:
      return end satisfies never
  }
}

/**
 * The request itself is wrong, and nothing was done. A new key has no record and gets none; what was taken over goes back to where it
 * was. Where another request with this key came first, it may be the very reason, and its record is the answer.
 */
async function giveUp<Tx>(hold: Hold<Tx>, error: OnlyonceError): Promise<RunEnd> {
  if (hold.owned === null) {
    const seen = await hold.house.store.look(hold.id).catch(() => null)
    return isFree(seen?.record ?? null) ? { why: 'invalid', error } : { why: 'conflict' }
  }
  await hold.release(failureOf(error))
  return { why: 'invalid', error: keptInvalid(error) }
}

/** What calls have brought must not be lost with the step that was to use it: it may not be possible to ask for it again. */
async function keep<Tx>(hold: Hold<Tx>, steps: Steps): Promise<void> {
  if (!steps.pending) return
  await hold.write({ state: 'in_progress', points: steps.points() })
  steps.committed()
}

/** What is kept of why an attempt stopped. An error that claims that its request changed nothing would say so of the key for ever. */
function stoppedBy(error: unknown): Failure {
  if (!claimsNothingDone(error)) return failureOf(error)
  const { code } = failureOf(error)
  const why = error.cause === undefined ? '' : ` ${failureOf(error.cause).message}`
  return { code, message: `The attempt stopped here.${why}`.slice(0, LIMITS.errorMessageLengthMax) }
}

/**
 * Why an attempt stopped, for operators: what the database said stands behind our own error, and so does the cause that
 * `notExecuted(cause)` was given.
 */
function reasonFor(error: unknown): Failure {
  const own = failureOf(error)
  if (!(error instanceof OnlyonceError) || error.cause === undefined) return own
  const behind = reasonFor(error.cause)
  if (error.code === 'not_applied') return behind
  const message = `${own.message} ${behind.code}: ${behind.message}`
  return { code: own.code, message: message.slice(0, LIMITS.errorMessageLengthMax) }
}

/** The record may run again, or it is in doubt, or an operator has to decide. */
type Left =
  | { readonly why: 'left'; readonly proof: Proof | null }
  | { readonly why: 'conflict' }
  | Extract<RunEnd, { why: 'doubt' | 'parked' }>

/**
 * The next owner goes on. What was done outside does not wait for a retry: the record is in doubt then, so that it
 * is looked at, and so it is where a call that was sent, or an undo, waits to be brought to its end; otherwise it is
 * proved that nothing happened. A call that was in doubt before, and was not come to, is still the one in doubt.
 */
async function leave<Tx>(
  hold: Hold<Tx>,
  steps: Steps,
  failure: Failure,
  unproved: boolean,
  signals: CallSignals,
): Promise<Left> {
  if (hold.owned === null) {
    const { left, proof } = await hold.leaveRetryable(failure)
    // Another request with this key came first, and may be the very reason: its record is the answer.
    return left ? { why: 'left', proof } : { why: 'conflict' }
  }
  if (steps.foreign || steps.undoing !== null || unproved)
    return await doubt(hold, failure, hold.open, signals)
  return { why: 'left', proof: await hold.release(failure) }
}

async function doubt<Tx>(
  hold: Hold<Tx>,
  failure: Failure,
  call: CallInDoubt,
  signals: CallSignals,
): Promise<Extract<RunEnd, { why: 'doubt' | 'parked' }>> {
  const lookInMs = await hold.doubt(failure, call)
  if (lookInMs === null) return { why: 'parked', failure }
  signals.doubted(failure)
  return { why: 'doubt', failure, call, lookInMs }
}

/** The record is in doubt: an error that says that its request changed nothing would be false. What the function threw is its own. */
function told(end: Extract<RunEnd, { why: 'failed' }>, left: Exclude<Left, { why: 'left' }>): RunEnd {
  return left.why === 'conflict' || claimsNothingDone(end.error) ? left : end
}

/** The record may run again. Steps that are durable have changed something, and the next attempt goes on behind them. */
function toldAs<Tx>(error: unknown, hold: Hold<Tx>, proof: Proof | null): unknown {
  if (hold.durable && claimsNothingDone(error)) return unproved(error, 'unfinished')
  return proveOr(error, proof, 'not_applied')
}

/** Of an attempt that could not even write down how it ended: others go on with what it has left. */
export function abandonedBy(error: unknown): Extract<RunEnd, { why: 'lost' }> {
  return { why: 'lost', error: inDoubt(error) }
}

export function outcomeOfEnd(end: RunEnd, { claimant, resumed, deadline }: OperationAttempt): Outcome {
  const origin = { fence: resumed?.record.fence ?? 1, trace: claimant.trace }
  switch (end.why) {
    case 'completed':
    case 'not_now':
      return { outcome: 'executed', reply: end.reply as Reply }
    case 'busy':
    case 'conflict':
      return busyFor(deadline)
    case 'doubt':
      return {
        outcome: 'unknown',
        failure: end.failure,
        retryAfterMs: lookedAtIn(end.lookInMs ?? 0),
        origin,
      }
    case 'parked':
      return { outcome: 'parked', failure: end.failure, origin }
    case 'lost':
      throw inDoubt(end.error)
    case 'failed':
    case 'invalid':
      throw end.error
    default:
      return end satisfies never
  }
}
