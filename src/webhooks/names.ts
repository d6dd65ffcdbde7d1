import { OnlyonceError } from '../core/errors.ts'
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

export function checkTime(name: string, atMs: unknown): number {
  if (isTime(atMs)) return atMs
  return refuse(`${name} must be in whole milliseconds since the epoch.`)
}

/** From the epoch to as far as PostgreSQL can count. */
export const isTime = (part: unknown): part is number => Number.isSafeInteger(part) && (part as number) >= 0

export function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
