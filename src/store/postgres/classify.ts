/**
 * The one place where errors of the database are understood. Everything else asks here.
 */
import { OnlyonceError } from '../../core/errors.ts'
import { memberOf } from '../../core/thrown.ts'
import { type Meaning, meaningOf } from './sql-states.ts'

export type Fault =
  /** A unique constraint: where it is that of the records, another record came first. */
  | 'unique'
  /** Serialization failure or deadlock: rolled back, and worth running again. */
  | 'collision'
  /** Another transaction held a lock for too long. */
  | 'lock_wait'
  /** A statement took longer than it may, or it was cancelled. */
  | 'too_slow'
  /** The server ended a transaction that was silent for too long. */
  | 'idle'
  /** The server ended a transaction that took longer than it lets one take: transaction_timeout, since PostgreSQL 17. */
  | 'timed_out'
  /** The connection is gone, or none could be made. */
  | 'connection'
  /** pg gave up waiting for an answer: the connection is busy with a statement that no caller waits for. */
  | 'unanswered'
  /** A standby answered: not a place to decide anything. */
  | 'not_primary'
  /** A pooler gave us another session than the one that prepared the statement. */
  | 'not_prepared'
  /** A prepared statement gives other columns than when it was prepared: a table has changed meanwhile. */
  | 'stale_plan'
  /** A statement failed earlier in this transaction, and the work swallowed the error. */
  | 'aborted'
  /** The record has another owner: what was sent behind this question has not been done. */
  | 'not_owner'
  /** The record is not where it was put: look for it by its key. */
  | 'moved'
  /** The server cannot do it now, for another reason: see sql-states.ts. */
  | 'passing'
  | 'other'

const FAULT_BY_CODE: Readonly<Record<string, Fault>> = {
  '23505': 'unique',
  '40001': 'collision',
  '40P01': 'collision',
  // Our own: see refuse_owner() in the migrations.
  OO001: 'not_owner',
  OO004: 'moved',
  '55P03': 'lock_wait',
  '57014': 'too_slow',
  '25P02': 'aborted',
  '25P03': 'idle',
  '25P04': 'timed_out',
  '25006': 'not_primary',
  '26000': 'not_prepared',
  '42P05': 'not_prepared',
  // Too many connections, starting up, shutting down, crashed: no server there to answer.
  '53300': 'connection',
  '57P01': 'connection',
  '57P02': 'connection',
  '57P03': 'connection',
  '57P05': 'connection',
}

export function classify(error: unknown): Fault {
  const code = sqlState(error)
  if (code === null) return classifyByDriver(error)
  if (code.startsWith('OO') && !isRefusedOwner(error)) return 'other'
  if (code.startsWith('08')) return isWrongBind(error) ? 'other' : 'connection'
  // The only use of 0A000 that concerns a plan; the message itself is translated, the routine is not.
  if (code === '0A000' && memberOf(error, 'routine') === 'RevalidateCachedQuery') return 'stale_plan'
  return FAULT_BY_CODE[code] ?? (meaningOf(code) === 'passing' ? 'passing' : 'other')
}

/** What an error of the database says about the work that got it; null where it is no error of the database. */
export function meaningOfError(error: unknown): Meaning | null {
  const code = sqlState(error)
  if (code === null) return null
  return isWrongBind(error) ? 'mistake' : meaningOf(code)
}

/**
 * A statement was given another number of values than it has parameters: a mistake of its author, for which PostgreSQL has no code but the one of
 * a broken protocol. The server goes on answering. A pooler uses the same code to say that it has lost the server, and names no routine.
 */
function isWrongBind(error: unknown): boolean {
  return sqlState(error) === '08P01' && memberOf(error, 'routine') === 'exec_bind_message'
}

/** The words of refuse_owner() in the migrations, which no language of the server changes: the work may raise a code of its own that looks like ours. */
function isRefusedOwner(error: unknown): boolean {
  return memberOf(error, 'message') === 'the record has another owner, or another place'
}

/** What did not come from PostgreSQL came from pg, or from the socket below it. */
function classifyByDriver(error: unknown): Fault {
  return memberOf(error, 'message') === 'Query read timeout' ? 'unanswered' : 'connection'
}

/** The same of an error of ours that was made of the database's: it is told to callers, and carries the other as its cause. */
export function faultBehind(error: unknown): Fault {
  return classify(error instanceof OnlyonceError ? (error.cause ?? error) : error)
}

/** Whether no server answered that could write: the same may be asked again later. */
export function isAway(error: unknown): boolean {
  return ['connection', 'unanswered', 'not_primary'].includes(classify(error))
}

/** Whether the database cannot do it now, reached or not. What was asked of it may be done another time. */
export function cannotNow(error: unknown): boolean {
  return isAway(error) || ['too_slow', 'passing'].includes(classify(error))
}

/** Whether the connection that gave this error to a statement of ours can be used for nothing more. */
export function isBroken(error: unknown): boolean {
  const fault = classify(error)
  return BROKEN.includes(fault)
}

const BROKEN: readonly Fault[] = [
  'connection',
  'unanswered',
  'idle',
  'timed_out',
  'not_primary',
  'not_prepared',
  'stale_plan',
]

/** An answer that says nothing about what became of the statement, if it is an answer at all. */
export function leavesDoubt(error: unknown): boolean {
  const code = sqlState(error)
  if (code === null || code === '40003') return true
  return code.startsWith('08') && !isWrongBind(error)
}

/** The five characters by which PostgreSQL names an error, or null when it was not PostgreSQL that spoke. */
export function sqlState(error: unknown): string | null {
  const code = memberOf(error, 'code')
  const severity = memberOf(error, 'severity')
  return typeof code === 'string' && code.length === 5 && typeof severity === 'string' ? code : null
}
