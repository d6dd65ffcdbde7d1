import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { scopeOf } from '../key/index.ts'
import { isId } from '../store/event-id.ts'

/** One endpoint of an account. */
export interface EndpointName {
  readonly account: string
  readonly id: string
}

export function checkAccount(account: unknown): string {
  return scopeOf(account, 'webhooks').account
}

/** What is no id at all names nothing; the database is not asked about it. */
export const isEndpointId = (id: unknown): id is string => isId(id) && id.startsWith('we_')
export const isMessageId = (id: unknown): id is string => isId(id) && id.startsWith('evt_')

export function checkLimit(limit: unknown = LIMITS.listDefault): number {
  if (Number.isSafeInteger(limit) && (limit as number) >= 1 && (limit as number) <= LIMITS.listMax) {
    return limit as number
  }
  return refuse(`limit must be a whole number from 1 to ${LIMITS.listMax}.`)
}

export function checkTime(name: string, atMs: unknown): number {
  if (isTime(atMs)) return atMs
  return refuse(`${name} must be in whole milliseconds since the epoch.`)
}

/** A place in a list, and nothing that gives a right to anything. */
export function cursorOf(...parts: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

export function readCursor<A, B>(
  cursor: unknown,
  isFirst: (part: unknown) => part is A,
  isSecond: (part: unknown) => part is B,
): readonly [A, B] | null {
  if (cursor === undefined || cursor === null) return null
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor as string, 'base64url').toString('utf8'))
    if (Array.isArray(parts) && parts.length === 2 && isFirst(parts[0]) && isSecond(parts[1])) {
      return [parts[0], parts[1]]
    }
  } catch {}
  return refuse('after is not that of an earlier page.')
}

/** From the epoch to as far as PostgreSQL can count. */
export const isTime = (part: unknown): part is number => Number.isSafeInteger(part) && (part as number) >= 0

export function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
