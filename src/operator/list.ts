import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown, requireList } from '../core/options.ts'
import { checkLimit, type PageOptions, readCursor } from '../core/page.ts'
import { checkKey, checkName, operationName } from '../key/index.ts'
import { EDGES, type State } from '../record/index.ts'
import type { ListPosition, ListRequest } from '../store/decisions.ts'

export interface ListOptions extends PageOptions {
  /**
   * The unfinished ones by default, and all of them with a key; finished ones only with an account.
   *
   * @default the unfinished ones; all of them with a key
   */
  readonly states?: readonly State[]
  /** @default all accounts */
  readonly account?: string
  /**
   * The records of one key, of every operation. Only with an account.
   *
   * @default all keys
   */
  readonly key?: string
  /**
   * Completed records of handlers that threw or replied with 5xx, of all accounts: whether they took effect before is not known, and
   * they are not run again. Not together with `states`.
   *
   * @default false
   */
  readonly failed?: boolean
  /** @default all operations */
  readonly operation?: string
  /**
   * Only those whose last attempt began at least this long ago.
   *
   * @default 0
   */
  readonly olderThanMs?: number
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
  const { account, key, failed = false, operation, olderThanMs = 0 } = options
  const states = statesOf(options)
  if (key !== undefined && account === undefined)
    refuse('A key is listed within an account. Name the account.')
  requireList('states', states)
  const wrong = states.find((state) => !Object.hasOwn(EDGES, state) || (state as string) === 'none')
  if (wrong !== undefined || states.length === 0) refuse('states must name states of records.')
  if (account === undefined && !failed && !states.every((state) => UNFINISHED.includes(state))) {
    refuse('Over all accounts only unfinished records are listed. Name an account.')
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
    limit: checkLimit(options.limit),
    after: positionOf(options.cursor),
  }
}

function statesOf({ states, key, failed = false }: ListOptions): readonly State[] {
  if (typeof failed !== 'boolean') refuse('failed must be true or false.')
  if (failed && states !== undefined) refuse('failed lists completed records. Pass it without states.')
  if (failed) return ['completed']
  return states ?? (key === undefined ? UNFINISHED : ALL)
}

const isText = (part: unknown): part is string => typeof part === 'string'
const isMicroseconds = (part: unknown): part is string => isText(part) && /^\d{1,17}$/.test(part)

export function partsOf({ attemptedAtUs, account, operation, key }: ListPosition): readonly string[] {
  return [attemptedAtUs, account, operation, key]
}

function positionOf(cursor: unknown): ListPosition | null {
  const parts = readCursor<[string, string, string, string]>(cursor, isMicroseconds, isText, isText, isText)
  if (parts === null) return null
  const [attemptedAtUs, account, operation, key] = parts
  return { attemptedAtUs, account, operation, key }
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
