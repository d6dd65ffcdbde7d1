import type {
  Attempt,
  AttemptOutcome,
  Failure,
  InProgress,
  Kind,
  OnceRecord,
  Reply,
  Stuck,
} from '../../record/index.ts'
import type { Seen } from '../contract.ts'
import type { Resumed } from '../operations.ts'
import type { Row } from './flush.ts'
import { RECORD_COLUMN_COUNT } from './sql/columns.ts'
import { plainText } from './type-parsers.ts'

/** Turns the columns of RECORD_COLUMNS into a record. */
export function readRecord(row: Row): Seen {
  const [state, fence, attempt_id, owner, digest, key_id, created, attempted, changed, lease, expires] = row
  const common = {
    kind: kindOf(row[21]!),
    decided: row[23] === 't',
    ...(Number(row[24] ?? 0) > 0 && { has_steps: true }),
    fence: Number(fence),
    attempt_id: attempt_id!,
    owner: owner!,
    fingerprint: { key_id: key_id!, digest: bytes(digest!) },
    trace: row[19] ?? null,
    created_at: Number(created),
    attempted_at: Number(attempted),
    changed_at: Number(changed),
  }
  return {
    record: { ...common, ...stateOf(state as OnceRecord['state'], lease!, expires!, row) },
    now: Number(row[17]),
  }
}

/** The same of a row of `lookOneAsText`, as the caller's client gives it. */
export function readSeen(row: Readonly<Record<string, unknown>> | undefined): Seen | null {
  return row === undefined ? null : readRecord(JSON.parse(plainText(row.columns)) as Row)
}

type Rest<T> = T extends OnceRecord
  ? Omit<
      T,
      | 'kind'
      | 'decided'
      | 'has_steps'
      | 'fence'
      | 'attempt_id'
      | 'owner'
      | 'fingerprint'
      | 'trace'
      | 'created_at'
      | 'attempted_at'
      | 'changed_at'
    >
  : never

function stateOf(state: OnceRecord['state'], lease: string, expires: string, row: Row): Rest<OnceRecord> {
  switch (state) {
    case 'in_progress':
      return { state, lease_until: Number(lease) }
    case 'completed':
      return { state, reply: readReply(row), expires_at: Number(expires) }
    case 'retryable':
      return { state, failure: readFailure(row[15]!, row[16]!), expires_at: Number(expires) }
    case 'unknown': {
      const look_at = row[20] == null ? null : Number(row[20])
      return { state, failure: readFailure(row[15]!, row[16]!), look_at, looks: Number(row[22] ?? 0) }
    }
    case 'parked':
      return { state, failure: readFailure(row[15]!, row[16]!) }
    case 'expired':
      return { state, expires_at: Number(expires) }
    default:
      throw new Error(`unknown state in the database: ${state satisfies never}`)
  }
}

/** How the column `kind` writes them. */
const LETTERS: Readonly<Record<Kind, string>> = {
  transaction: 't',
  operation: 'o',
  handler: 'h',
  handler_rerunnable: 'r',
  handler_recoverable: 'c',
}
const KINDS = new Map(Object.entries(LETTERS).map(([kind, letter]) => [letter, kind as Kind]))

export function letterOf(kind: Kind): string {
  return LETTERS[kind]
}

/** A letter of a newer version is read as a kind that must not run again. */
export function kindOf(letter: string): Kind {
  return KINDS.get(letter) ?? 'handler'
}

function readReply(row: Row): Reply {
  return {
    status: Number(row[11]),
    headers: JSON.parse(row[12]!) as Reply['headers'],
    body: row[13] === null || row[13] === undefined ? null : bytes(row[13]),
    schema: Number(row[14]),
    sealed_by: row[18] ?? null,
  }
}

/** Turns the columns of ATTEMPT_COLUMNS into an attempt. */
export function readAttempt(row: Row): Attempt {
  const [fence, attempt_id, owner, started, ended, outcome, code, message] = row
  return {
    fence: Number(fence),
    attempt_id: attempt_id!,
    owner: owner!,
    started_at: Number(started),
    ended_at: Number(ended),
    outcome: outcome as AttemptOutcome,
    failure: code === null ? null : readFailure(code!, message!),
  }
}

/** Turns the columns of RESUMED_COLUMNS into an operation in new hands. */
export function readResumed(row: Row): Resumed {
  const { record } = readRecord(row)
  const [version, input, input_key, progress, progress_key, points, point_age, sent_age, overdue, ...rest] =
    row.slice(RECORD_COLUMN_COUNT)
  const [retention, looks, place, waited_for, void_calls, effects_possible, vanished, waited_step] = rest
  return {
    record: record as InProgress,
    version: version!,
    input: { bytes: bytes(input ?? ''), sealed_by: input_key ?? null },
    progress: progress == null ? null : { bytes: bytes(progress), sealed_by: progress_key ?? null },
    count: Number(points ?? 0),
    point_age_ms: Number(point_age),
    sent_age_ms: sent_age == null ? null : Number(sent_age),
    deadline_in_ms: overdue == null ? null : -Number(overdue),
    retention_ms: Number(retention),
    looks: Number(looks ?? 0),
    place: place ?? undefined,
    waited_for: waited_for ?? null,
    waited_step: waited_step ?? null,
    void_calls: readList(void_calls),
    effects_possible: effects_possible === 't',
    vanished: Number(vanished),
  }
}

/** A list of texts, as JSON; none is an empty one. */
export function readList(text: string | null | undefined): readonly string[] {
  return text == null ? [] : (JSON.parse(text) as string[])
}

/** Turns the rows of `countStuck` into counts; a state without a row has none. */
export function readStuck(rows: readonly Row[]): Stuck {
  const countOf = (state: keyof Stuck) => {
    const row = rows.find((candidate) => candidate[0] === state)
    return { count: Number(row?.[1] ?? 0), oldest_age_ms: Number(row?.[2] ?? 0) }
  }
  return { in_progress: countOf('in_progress'), unknown: countOf('unknown'), parked: countOf('parked') }
}

function readFailure(code: string, message: string | null): Failure {
  return { code, message: message ?? '' }
}

function bytes(hex: string): Buffer {
  return Buffer.from(hex, 'hex')
}

/** The values of a reply's five columns. */
export function replyValues(reply: Reply): [string, string, Buffer | null, string, string | null] {
  const { status, headers, body, schema, sealed_by } = reply
  return [`${status}`, JSON.stringify(headers), body, `${schema}`, sealed_by]
}

/** An array as a literal. */
export function arrayLiteral(values: readonly (string | null)[]): string {
  return `{${values.map(quote).join(',')}}`
}

/** An array of bytes as a literal. */
export function bytesLiteral(values: readonly (Buffer | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : `"\\\\x${value.toString('hex')}"`)).join(',')}}`
}

function quote(value: string | null): string {
  if (value === null) return 'NULL'
  return /[\\"]/.test(value) ? `"${value.replace(/[\\"]/g, '\\$&')}"` : `"${value}"`
}
