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
  const [state, fence, attemptId, owner, digest, keyId, created, attempted, changed, lease, expires] = row
  const common = {
    kind: kindOf(row[21]!),
    decided: row[23] === 't',
    ...(Number(row[24] ?? 0) > 0 && { hasSteps: true }),
    fence: Number(fence),
    attemptId: attemptId!,
    owner: owner!,
    fingerprint: { keyId: keyId!, digest: bytes(digest!) },
    trace: row[19] ?? null,
    createdAt: Number(created),
    attemptedAt: Number(attempted),
    changedAt: Number(changed),
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
      | 'hasSteps'
      | 'fence'
      | 'attemptId'
      | 'owner'
      | 'fingerprint'
      | 'trace'
      | 'createdAt'
      | 'attemptedAt'
      | 'changedAt'
    >
  : never

function stateOf(state: OnceRecord['state'], lease: string, expires: string, row: Row): Rest<OnceRecord> {
  switch (state) {
    case 'in_progress':
      return { state, leaseUntil: Number(lease) }
    case 'completed':
      return { state, reply: readReply(row), expiresAt: Number(expires) }
    case 'retryable':
      return { state, failure: readFailure(row[15]!, row[16]!), expiresAt: Number(expires) }
    case 'unknown': {
      const lookAt = row[20] == null ? null : Number(row[20])
      return { state, failure: readFailure(row[15]!, row[16]!), lookAt, looks: Number(row[22] ?? 0) }
    }
    case 'parked':
      return { state, failure: readFailure(row[15]!, row[16]!) }
    case 'expired':
      return { state, expiresAt: Number(expires) }
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
    sealedBy: row[18] ?? null,
  }
}

/** Turns the columns of ATTEMPT_COLUMNS into an attempt. */
export function readAttempt(row: Row): Attempt {
  const [fence, attemptId, owner, started, ended, outcome, code, message] = row
  return {
    fence: Number(fence),
    attemptId: attemptId!,
    owner: owner!,
    startedAt: Number(started),
    endedAt: Number(ended),
    outcome: outcome as AttemptOutcome,
    failure: code === null ? null : readFailure(code!, message!),
  }
}

/** Turns the columns of RESUMED_COLUMNS into an operation in new hands. */
export function readResumed(row: Row): Resumed {
  const { record } = readRecord(row)
  const [version, input, inputKey, progress, progressKey, points, pointAge, sentAge, overdue, ...rest] =
    row.slice(RECORD_COLUMN_COUNT)
  const [retention, looks, place, waitedFor, voidCalls, effectsPossible, vanished, waitedStep] = rest
  return {
    record: record as InProgress,
    version: version!,
    input: { bytes: bytes(input ?? ''), sealedBy: inputKey ?? null },
    progress: progress == null ? null : { bytes: bytes(progress), sealedBy: progressKey ?? null },
    count: Number(points ?? 0),
    pointAgeMs: Number(pointAge),
    sentAgeMs: sentAge == null ? null : Number(sentAge),
    deadlineInMs: overdue == null ? null : -Number(overdue),
    retentionMs: Number(retention),
    looks: Number(looks ?? 0),
    place: place ?? undefined,
    waitedFor: waitedFor ?? null,
    waitedStep: waitedStep ?? null,
    voidCalls: readList(voidCalls),
    effectsPossible: effectsPossible === 't',
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
    return { count: Number(row?.[1] ?? 0), oldestAgeMs: Number(row?.[2] ?? 0) }
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
  const { status, headers, body, schema, sealedBy } = reply
  return [`${status}`, JSON.stringify(headers), body, `${schema}`, sealedBy]
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
