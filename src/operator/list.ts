import { OnlyonceError } from '../errors.ts'
import { checkName, operationName } from '../key/index.ts'
import { LIMITS } from '../limits.ts'
import { type OptionNames, refuseUnknown } from '../options.ts'
import { EDGES, type State } from '../record/index.ts'
import type { ListPosition, ListRequest, RecordSummary } from '../store/decisions.ts'

export interface ListOptions {
  /** The unfinished ones by default; others only with an account. */
  readonly states?: readonly State[]
  readonly account?: string
  readonly operation?: string
  /** Only those whose last attempt began at least this long ago. */
  readonly older_than_ms?: number
  readonly limit?: number
  /** Of the page before. */
  readonly cursor?: string
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
  operation: true,
  older_than_ms: true,
  limit: true,
  cursor: true,
}
const UNFINISHED: readonly State[] = ['in_progress', 'unknown', 'parked']

/** Checks what is asked of a list. */
export function listRequestOf(options: ListOptions): ListRequest {
  refuseUnknown('operator.list()', options, NAMES)
  const { states = UNFINISHED, account, operation, older_than_ms = 0, limit = LIMITS.list_default } = options
  const wrong = states.find((state) => !Object.hasOwn(EDGES, state) || (state as string) === 'none')
  if (wrong !== undefined || states.length === 0) refuse('states must name states of records.')
  if (account === undefined && !states.every((state) => UNFINISHED.includes(state))) {
    refuse('Over all accounts only unfinished records are listed. Name an account.')
  }
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > LIMITS.list_max) {
    refuse(`limit must be a whole number from 1 to ${LIMITS.list_max}.`)
  }
  if (!Number.isSafeInteger(older_than_ms) || older_than_ms < 0) {
    refuse('older_than_ms must be a whole number of milliseconds.')
  }
  return {
    states,
    account: account === undefined ? null : checkName(account, 'account_invalid'),
    operation: operation === undefined ? null : operationName(operation),
    older_than_ms,
    limit,
    after: options.cursor === undefined ? null : readCursor(options.cursor),
  }
}

/** A place in the list, and nothing that gives a right to anything: whoever may list may see all of it. */
export function cursorOf({ attempted_at_us, account, operation, key }: ListPosition): string {
  return Buffer.from(JSON.stringify([attempted_at_us, account, operation, key])).toString('base64url')
}

function readCursor(cursor: string): ListPosition {
  try {
    const [attempted_at_us, account, operation, key] = JSON.parse(
      Buffer.from(cursor, 'base64url').toString('utf8'),
    )
    const texts = [account, operation, key].every((part) => typeof part === 'string')
    if (texts && /^\d{1,17}$/.test(attempted_at_us)) return { attempted_at_us, account, operation, key }
  } catch {}
  return refuse('cursor is not that of an earlier page.')
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
