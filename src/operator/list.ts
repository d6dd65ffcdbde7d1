import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown, requireList } from '../core/options.ts'
import { checkKey, checkName, operationName } from '../key/index.ts'
import { EDGES, type State } from '../record/index.ts'
import type { ListPosition, ListRequest, RecordSummary } from '../store/decisions.ts'

export interface ListOptions {
  /** The unfinished ones by default, and all of them with a key; finished ones only with an account. */
  readonly states?: readonly State[]
  readonly account?: string
  /** The records of one key, of every operation. Only with an account. */
  readonly key?: string
  /**
   * Completed records of handlers that threw or replied with 5xx, of all accounts: whether they took effect before is not known, and
   * they are not run again. Not together with `states`.
   */
  readonly failed?: boolean
  readonly operation?: string
  /** Only those whose last attempt began at least this long ago. */
  readonly olderThanMs?: number
  readonly limit?: number
  /** Of the page before. */
  readonly cursor?: string | null
}

export interface Page {
  /** The oldest attempt first. */
  readonly records: readonly RecordSummary[]
  /** Where the next page begins; null where there is none. */
  readonly cursor: string | null
}

const NAMES: OptionNames<ListOptions> = {
  states: true,
  account: true,
  key: true,
  failed: true,
  operation: true,
  olderThanMs: true,
  limit: true,
  cursor: true,
}
const UNFINISHED: readonly State[] = ['in_progress', 'unknown', 'parked']
const ALL = Object.keys(EDGES).filter((state): state is State => state !== 'none')

/** Checks what is asked of a list. */
export function listRequestOf(options: ListOptions): ListRequest {
  refuseUnknown('operator.list()', options, NAMES)
  const { account, key, failed = false, operation, olderThanMs = 0, limit = LIMITS.listDefault } = options
  const states = statesOf(options)
  if (key !== undefined && account === undefined)
    refuse('A key is listed within an account. Name the account.')
  requireList('states', states)
  const wrong = states.find((state) => !Object.hasOwn(EDGES, state) || (state as string) === 'none')
  if (wrong !== undefined || states.length === 0) refuse('states must name states of records.')
  if (account === undefined && !failed && !states.every((state) => UNFINISHED.includes(state))) {
    refuse('Over all accounts only unfinished records are listed. Name an account.')
  }
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > LIMITS.listMax) {
    refuse(`limit must be a whole number from 1 to ${LIMITS.listMax}.`)
  }
  if (!Number.isSafeInteger(olderThanMs) || olderThanMs < 0) {
    refuse('olderThanMs must be a whole number of milliseconds.')
  }
  return {
    states,
    account: account === undefined ? null : checkName(account, 'account_invalid'),
    key: key === undefined ? null : checkKey(key, { allowSensitive: true }),
    failed,
    operation: operation === undefined ? null : operationName(operation),
    olderThanMs,
    limit,
    after: options.cursor == null ? null : readCursor(options.cursor),
  }
}

function statesOf({ states, key, failed = false }: ListOptions): readonly State[] {
  if (typeof failed !== 'boolean') refuse('failed must be true or false.')
  if (failed && states !== undefined) refuse('failed lists completed records. Pass it without states.')
  if (failed) return ['completed']
  return states ?? (key === undefined ? UNFINISHED : ALL)
}

/** A place in the list, and nothing that gives a right to anything: an operator who may list may see all of it. */
export function cursorOf({ attemptedAtUs, account, operation, key }: ListPosition): string {
  return Buffer.from(JSON.stringify([attemptedAtUs, account, operation, key])).toString('base64url')
}

function readCursor(cursor: string): ListPosition {
  try {
    const [attemptedAtUs, account, operation, key] = JSON.parse(
      Buffer.from(cursor, 'base64url').toString('utf8'),
    )
    const texts = [account, operation, key].every((part) => typeof part === 'string')
    if (texts && /^\d{1,17}$/.test(attemptedAtUs)) return { attemptedAtUs, account, operation, key }
  } catch {}
  return refuse('cursor is not that of an earlier page.')
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
