/** Who may say that nothing was executed, of what, and what is said where that is not proved. */
import { acrossCopies } from '../core/copies.ts'
import { OnlyonceError, type PlainCode, type Proof, proveStatement } from '../core/errors.ts'
import { invalidAnswerOf, keptInvalid } from '../core/invalid.ts'
import { failureOf } from '../record/failure.ts'
import { type Failure, mayHideEffects, type State } from '../record/index.ts'
import type { Owned, Store, TransactionAttempt } from '../store/contract.ts'

/** Errors that have left a protected call: what they prove, they proved there. */
const spent = acrossCopies('spent_errors', () => new WeakSet<object>())

/**
 * Whether an error proves that the work which threw it did nothing. One that comes out of another protected call
 * inside that work proves it of that call alone: the work around it may have done much.
 */
export function provesNothingDone(error: unknown): boolean {
  return isStatement(error) && !spent.has(error)
}

/**
 * Whether an error says that the request itself is wrong, and that the work which threw it did nothing. Only what `invalid()` has made
 * does; as with a proof, one that comes out of another protected call speaks for that call alone.
 */
export function saysInvalid(error: unknown): error is OnlyonceError {
  return invalidAnswerOf(error) !== null && !spent.has(error as object)
}

/** What leaves a protected call as an error proves nothing about the work of a call around it. */
export function throwSpent(error: unknown): never {
  const told = isStatement(error) && error.executed !== 'no' ? unproved(error, 'not_applied') : error
  if (isStatement(told) || invalidAnswerOf(told) !== null) spent.add(told as object)
  throw told
}

/** Whether an error says that its request changed nothing. After work has begun that needs to be known, not assumed. */
export function claimsNothingDone(error: unknown): error is OnlyonceError {
  if (!(error instanceof OnlyonceError)) return false
  return error.executed === 'no' || error.executed === 'not_by_this_request'
}

/** What is said in place of an error that claims too much. */
export function unproved(error: unknown, code: PlainCode): OnlyonceError {
  return new OnlyonceError(code, { cause: error })
}

/** An error with which nothing more is claimed than that the outcome is not known: one of the record, or one that says so itself. */
export function inDoubt(error: unknown): OnlyonceError {
  const honest = error instanceof OnlyonceError && !claimsNothingDone(error)
  return honest ? error : unproved(error, 'outcome_unknown')
}

/** Whether the work itself is why its transaction is over: it sent nothing for too long, and would again. */
export function isIdle(error: unknown): boolean {
  return error instanceof OnlyonceError && error.code === 'transaction_idle'
}

/** The same, of a question that was not answered. */
export function throwInDoubt(error: unknown): never {
  throw inDoubt(error)
}

/** What was there when an attempt took its record. */
export interface Before {
  readonly from: State | 'none'
  /** Earlier attempts may have done something and left the record retryable all the same. */
  readonly effectsPossible: boolean
  /** Something of the work is durable, by this attempt or an earlier one. */
  readonly durable: boolean
}

/** The one proof there is; only this file gives it out, and only together with the write that proves it. */
const PROVED = {} as Proof

/**
 * Gives the record of an attempt back that did nothing. The attempt owned it until now, so nothing else took effect meanwhile;
 * null where an earlier attempt may have done something, or where the key is older than what is known of it.
 */
export async function releaseProved<Tx>(
  store: Pick<Store<Tx>, 'release'>,
  owned: Owned,
  failure: Failure,
  retentionMs: number,
  { from, effectsPossible, durable }: Before,
): Promise<Proof | null> {
  await store.release(owned, failure, retentionMs, effectsPossible)
  if (durable) return null
  return from === 'none' || (from === 'retryable' && !effectsPossible) ? PROVED : null
}

/**
 * Removes the record of an attempt whose request is wrong, so that a corrected one runs under the same key. Where the record is not
 * the attempt's own, or must not be removed, it is left retryable as an attempt that did nothing leaves it: earlier attempts may
 * have had effects, and then the key keeps its content. Gives what the caller is told.
 */
export async function forgetOrRelease<Tx>(
  store: Pick<Store<Tx>, 'forget' | 'release'>,
  owned: Owned,
  error: OnlyonceError,
  retentionMs: number,
  effectsPossible: boolean,
): Promise<OnlyonceError> {
  if (await store.forget(owned).catch(unlessForbidden)) return error
  await store.release(owned, failureOf(error), retentionMs, effectsPossible)
  return keptInvalid(error)
}

/** The server has refused to delete, for example because the role has no right to: the record stays. What only waits is tried again. */
function unlessForbidden(error: unknown): false {
  if (error instanceof OnlyonceError && error.code !== 'store_misconfigured') throw error
  return false
}

/**
 * Leaves a retryable record after a rollback. Where it goes in, no other attempt has committed under this key, and the record
 * says so from now on. `left` is false where a record of another's is there.
 */
export async function leaveProved<Tx>(
  store: Pick<Store<Tx>, 'leaveRetryable'>,
  attempt: TransactionAttempt,
  failure: Failure,
): Promise<{ readonly left: boolean; readonly proof: Proof | null }> {
  const left = await store.leaveRetryable(attempt, failure)
  const { previous } = attempt
  const nothingBefore = previous === null || (previous.state === 'retryable' && !mayHideEffects(previous))
  return { left, proof: left && nothingBefore ? PROVED : null }
}

/** Nothing could be written: the caller hears what its own function said, and no more than that is known. */
export const UNWRITTEN = { left: true, proof: null } as const

/** The author's word about an attempt, said of the key where that is proved, and otherwise under another code. */
export function proveOr(error: unknown, proof: Proof | null, code: PlainCode): unknown {
  // It was said of a call inside the work.
  if (invalidAnswerOf(error) !== null) return unproved(error, code)
  if (!isStatement(error)) return error
  return proof === null ? unproved(error, code) : proveStatement(error, proof)
}

function isStatement(error: unknown): error is OnlyonceError & { code: 'not_executed' } {
  return error instanceof OnlyonceError && error.code === 'not_executed'
}
