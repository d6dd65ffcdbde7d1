import type { Injection } from './faulty-store.ts'

export type Protection = 'transaction' | 'handler' | 'operation'

/** What the work of a request does with the error. */
export type InWork = 'none' | 'throws_first' | 'throws_last' | 'call_throws_first' | 'call_throws_last'

/** A moment in the life of a request at which an error comes. */
export interface Moment {
  readonly name: string
  readonly protection: Protection
  /** Where in the store, or in the work. */
  readonly strikes: Pick<Injection, 'method' | 'when'> | { readonly work: InWork }
  /** What else has to go wrong for the request to come there. */
  readonly given?: Given
}

/**
 * - `says_not_executed`: the work throws `notExecuted()`.
 * - `call_in_doubt`, `call_refused`: how the first call of an operation ends.
 * - `atomic_first`: the operation begins with a transaction, and not with a call.
 * - `retryable_before`, `executed_before`: what an earlier request with the key has left.
 * - `lost_step`: the COMMIT before it was sent and not answered.
 */
export type Given =
  | 'says_not_executed'
  | 'call_in_doubt'
  | 'call_refused'
  | 'atomic_first'
  | 'retryable_before'
  | 'executed_before'
  | 'lost_step'

const at = (protection: Protection, method: string, ...whens: Injection['when'][]): Moment[] =>
  whens.map((when) => ({
    name: `${protection}: ${method} ${when}`,
    protection,
    strikes: { method, when },
  }))

const given = (moments: readonly Moment[], why: Given): Moment[] =>
  moments.map((moment) => ({ ...moment, name: `${moment.name}, ${why}`, given: why }))

const inWork = (protection: Protection, ...works: InWork[]): Moment[] =>
  works.map((work) => ({ name: `${protection}: ${work}`, protection, strikes: { work } }))

/** Every moment at which the library waits for its store or for its user's code, in the order in which a request comes to it. */
export const MOMENTS: readonly Moment[] = [
  ...at('transaction', 'look', 'before', 'after'),
  ...at('transaction', 'transact', 'before', 'after', 'failed', 'lost'),
  ...given(at('transaction', 'settle', 'before', 'after'), 'lost_step'),
  ...inWork('transaction', 'throws_first', 'throws_last'),
  ...given(at('transaction', 'leaveRetryable', 'before', 'after'), 'says_not_executed'),
  ...given(at('transaction', 'transact', 'failed', 'lost'), 'retryable_before'),
  ...given(at('transaction', 'look', 'before', 'after'), 'executed_before'),

  ...at('handler', 'claim', 'before', 'after'),
  ...given(at('handler', 'claim', 'before', 'after'), 'retryable_before'),
  ...inWork('handler', 'throws_first', 'throws_last'),
  ...at('handler', 'complete', 'before', 'after'),
  ...given(at('handler', 'release', 'before', 'after'), 'says_not_executed'),
  ...given(at('handler', 'claim', 'before', 'after'), 'executed_before'),

  ...at('operation', 'look', 'before', 'after'),
  ...given(at('operation', 'operations.begin', 'before', 'after', 'failed', 'lost'), 'atomic_first'),
  ...at('operation', 'operations.claim', 'before', 'after'),
  ...given(at('operation', 'operations.takeOver', 'before', 'after'), 'retryable_before'),
  ...inWork('operation', 'call_throws_first', 'call_throws_last'),
  ...given(at('operation', 'operations.evidence', 'before', 'after'), 'call_in_doubt'),
  ...inWork('operation', 'throws_first', 'throws_last'),
  ...at('operation', 'operations.step', 'before', 'after', 'failed', 'lost'),
  ...given(at('operation', 'operations.settleStep', 'before', 'after'), 'lost_step'),
  ...at('operation', 'operations.write', 'before', 'after'),
  ...given(at('operation', 'operations.doubt', 'before', 'after'), 'call_in_doubt'),
  ...given(at('operation', 'operations.park', 'before', 'after'), 'call_refused'),
  ...given(at('operation', 'release', 'before', 'after'), 'says_not_executed'),
  ...given(at('operation', 'operations.step', 'failed', 'lost'), 'atomic_first'),
  ...given(at('operation', 'look', 'before', 'after'), 'executed_before'),
]
