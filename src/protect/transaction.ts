import { randomUUID } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { keptInvalid } from '../core/invalid.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { Fingerprint } from '../fingerprint/index.ts'
import type { CallSignals, Origin } from '../observe/index.ts'
import { failureOf } from '../record/failure.ts'
import {
  asLongAgain,
  type Claimant,
  type Decision,
  decide,
  type Failure,
  isFree,
  type RecordId,
  type Reply,
  type Run,
} from '../record/index.ts'
import type {
  CrashPoint,
  Isolation,
  Seen,
  Store,
  TransactionAttempt,
  TransactionEnd,
} from '../store/contract.ts'
import { refuseNewWork } from './lapsed.ts'
import { leaveUnknown } from './leave-unknown.ts'
import { isIdle, leaveProved, proveOr, saysInvalid, throwInDoubt, UNWRITTEN } from './proof.ts'
import type { Recovery } from './recovery.ts'

/** Work whose effects are all in the store's database, with everything that decides about it. */
export interface TransactionRequest {
  readonly id: RecordId
  readonly owner: string
  readonly fingerprint: Fingerprint
  readonly trace: string | null
  readonly matches: (stored: Fingerprint) => boolean
  /** Why the key may start nothing new, or null. What is there already is answered as ever. */
  readonly lapsed: OnlyonceError | null
  readonly retentionMs: number
  readonly deadlineMs: number
  readonly isolation: Isolation | null
  readonly exclusive: boolean
  /** Work that sends no statement on its `tx` leaves the record unknown: its effects, if any, are elsewhere. */
  readonly strictTx: boolean
  /** False for work that cannot be run a second time in place, such as an HTTP handler. */
  readonly rerun: boolean
}

/** What became of a protected call, before its reply is turned into a value or a response. */
export type Outcome =
  | { readonly outcome: 'executed'; readonly reply: Reply }
  /** `origin` is the attempt that the caller met. */
  | { readonly outcome: 'replayed'; readonly reply: Reply; readonly origin: Origin }
  | { readonly outcome: 'in_progress'; readonly retryAfterMs: number }
  | { readonly outcome: 'key_reused' }
  | {
      readonly outcome: 'unknown'
      readonly failure: Failure
      readonly retryAfterMs: number
      readonly origin: Origin
    }
  | { readonly outcome: 'parked'; readonly failure: Failure; readonly origin: Origin }

/**
 * Runs work in one transaction and one commit together with its record.
 *
 * Look first, run the work, insert the finished record last: the effects happen once, while the function
 * itself may run again after a collision, or beside a duplicate in another process whose record wins.
 */
export async function runTransaction<Tx>(
  store: Store<Tx>,
  request: TransactionRequest,
  work: (tx: Tx) => Promise<Reply>,
  recovery: Pick<Recovery<Tx>, 'attend' | 'graceMs'>,
  crashPoint: CrashPoint,
  signals: CallSignals,
  misused: { readonly unusedTx: () => void; readonly ignoredError: (failure: Failure) => void },
): Promise<Outcome> {
  const deadline = new Deadline(request.deadlineMs)
  let last: unknown
  for (let tries = 0; tries < LIMITS.attemptsMax; tries += 1) {
    if (tries > 0 && !(await deadline.backOff(tries))) break
    const claimant: Claimant = {
      kind: 'transaction',
      attemptId: randomUUID(),
      owner: request.owner,
      fingerprint: request.fingerprint,
      trace: request.trace,
    }
    crashPoint('transaction.look.before')
    const seen = await store.look(request.id)
    crashPoint('transaction.look.after')
    refuseNewWork(request.lapsed, seen?.record.state ?? 'none')
    const decision = decideFrom(seen, request, claimant)
    signals.decided(decision)
    if (decision.kind !== 'run') {
      if (tries === 0 && (await recovery.attend(request.id, decision))) continue
      return outcomeOf(decision)
    }
    // Work that cannot run twice has had its run; only another's reply could have helped.
    if (tries > 0 && !request.rerun) break
    const attempt = attemptOf(request, claimant, seen, deadline)
    // A store tells ends; one that throws has told none, and the work may have begun.
    const told = await store.transact(attempt, work, crashPoint).catch(throwInDoubt)
    if (wentOn(told)) misused.ignoredError(failureOf(told.error))
    const end = ofTheStore(told, request)
    if (isUnused(end)) misused.unusedTx()
    if (end.end === 'committed') return { outcome: 'executed', reply: end.reply }
    if (end.end === 'busy') return busyFor(deadline)
    const step = await stepAfter(end, store, attempt, recovery.graceMs, crashPoint, signals)
    if (step.next === 'done') return step.outcome
    last = step.error
    if (step.next === 'rerun' && !request.rerun) break
  }
  throw last instanceof OnlyonceError ? last : new OnlyonceError('serialization_failed', { cause: last })
}

/** What the work wrote, it wrote elsewhere: a retry in another process may write it again. */
function isUnused(end: TransactionEnd): boolean {
  if (end.end === 'committed') return end.unused === true
  return end.end === 'ended_inside' && end.error.code === 'transaction_unused'
}

/**
 * Whether the work has ignored that one of its statements failed. What only passes, such as a full disk, is told as that: the same
 * work may well go on another time.
 */
function wentOn(end: TransactionEnd): end is Extract<TransactionEnd, { end: 'failed' }> {
  return end.end === 'failed' && end.wentOn === true && !(end.error instanceof OnlyonceError)
}

/**
 * Work from code is told what it threw. An HTTP handler has let its framework make a page of it, on which the client would read the
 * error of the store, and perhaps its stack: there the trouble itself is the end.
 */
function ofTheStore(end: TransactionEnd, { rerun }: TransactionRequest): TransactionEnd {
  if (wentOn(end) && !rerun)
    return { end: 'failed', error: new OnlyonceError('statement_failed', { cause: end.error }) }
  if (end.end !== 'failed' || end.trouble === undefined || rerun) return end
  return { end: 'failed', error: end.trouble }
}

/** Another's transaction is open. It has run for as long as was waited for it, at least. */
export function busyFor(waited: Deadline): Outcome {
  return { outcome: 'in_progress', retryAfterMs: asLongAgain(waited.elapsedMs) }
}

/** After one attempt: it is done, or look again because another came first, or run again. */
type Step =
  | { readonly next: 'done'; readonly outcome: Outcome }
  | { readonly next: 'look' | 'rerun'; readonly error: unknown }

async function stepAfter<Tx>(
  end: Exclude<TransactionEnd, { end: 'committed' | 'busy' }>,
  store: Store<Tx>,
  attempt: TransactionAttempt,
  graceMs: number,
  crashPoint: CrashPoint,
  signals: CallSignals,
): Promise<Step> {
  switch (end.end) {
    case 'conflict':
      return { next: 'look', error: new OnlyonceError('serialization_failed') }
    case 'rerun':
      return { next: 'rerun', error: end.error }
    case 'in_doubt': {
      crashPoint('transaction.settle.before')
      const verdict = await store.settle(attempt).catch(throwInDoubt)
      crashPoint('transaction.settle.after')
      if (verdict === 'committed') return { next: 'done', outcome: { outcome: 'executed', reply: end.reply } }
      return isIdle(end.error)
        ? await afterFailure(store, attempt, end.error, crashPoint)
        : { next: 'rerun', error: end.error }
    }
    case 'ended_inside':
      await leaveUnknown(store, attempt, end.error, graceMs, signals)
      throw end.error
    case 'failed':
      return await afterFailure(store, attempt, end.error, crashPoint)
    default:
      return end satisfies never
  }
}

/**
 * The work threw and was rolled back. Its key keeps its fingerprint by a retryable record, as far as that can
 * be written. Where another's record stands, it may be the very reason for the error (a duplicate that came
 * first has inserted the same row), and then its reply is the answer.
 */
async function afterFailure<Tx>(
  store: Store<Tx>,
  attempt: TransactionAttempt,
  error: unknown,
  crashPoint: CrashPoint,
): Promise<Step> {
  // Where not even the work could reach the store, or all time is spent, do not keep the caller waiting.
  if (error instanceof OnlyonceError && NOT_WORTH_A_WRITE.includes(error.code)) throw error
  if (saysInvalid(error)) return await afterInvalid(store, attempt, error)
  crashPoint('transaction.failed.before')
  const { left, proof } = await leaveProved(store, attempt, failureOf(error)).catch(() => UNWRITTEN)
  crashPoint('transaction.failed.after')
  const answer = proveOr(error, proof, 'not_applied')
  if (left) throw answer
  const seen = await store.look(attempt.id).catch(() => null)
  if (seen?.record.state !== 'completed') throw answer
  return { next: 'look', error: answer }
}

/**
 * The request itself is wrong, and its work was rolled back: nothing is left, so the key is as it was before. Where another request
 * with this key came first, it may be the very reason, and its reply is the answer.
 */
async function afterInvalid<Tx>(
  store: Store<Tx>,
  { id, previous }: TransactionAttempt,
  error: OnlyonceError,
): Promise<Step> {
  const record = await store.look(id).then(
    (seen) => seen?.record ?? null,
    () => previous,
  )
  if (record?.state === 'completed') return { next: 'look', error }
  throw isFree(record) ? error : keptInvalid(error)
}

const NOT_WORTH_A_WRITE: readonly string[] = [
  'store_unavailable',
  'pool_exhausted',
  'overloaded',
  'deadline_exceeded',
]

function attemptOf(
  { id, retentionMs, isolation, exclusive, strictTx }: TransactionRequest,
  claimant: Claimant,
  seen: Seen | null,
  deadline: Deadline,
): TransactionAttempt {
  const previous = seen?.record ?? null
  const timeMaxMs = Math.max(1, deadline.leftMs)
  return { id, claimant, previous, retentionMs, isolation, exclusive, strictTx, timeMaxMs }
}

function decideFrom(seen: Seen | null, request: TransactionRequest, claimant: Claimant): Decision {
  const record = seen?.record ?? null
  const sameRequest = record === null || record.state === 'expired' || request.matches(record.fingerprint)
  const claim = { claimant, sameRequest, leaseMs: 0, takeover: 'doubt' } as const
  return decide(record, claim, seen?.now ?? 0)
}

export function outcomeOf(decision: Exclude<Decision, Run>): Outcome {
  switch (decision.kind) {
    case 'replay':
      return { outcome: 'replayed', reply: decision.record.reply, origin: decision.record }
    case 'in_progress':
      return {
        outcome: 'in_progress',
        retryAfterMs: decision.retryAfterMs,
      }
    case 'key_reused':
      return { outcome: 'key_reused' }
    case 'vanished':
    case 'unknown':
      return {
        outcome: 'unknown',
        failure: decision.record.failure,
        retryAfterMs: decision.retryAfterMs,
        origin: decision.record,
      }
    case 'parked':
      return { outcome: 'parked', failure: decision.record.failure, origin: decision.record }
    default:
      return decision satisfies never
  }
}
