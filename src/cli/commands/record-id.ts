import type { RecordId } from '../../record/index.ts'
import type { Call } from '../command.ts'

/** What every command about one record takes. */
export const RECORD_ID = ['<account>', '<operation>', '<key>'] as const

export function recordId({ given }: Call): RecordId {
  const [account, operation, key] = given
  return { account: account!, operation: operation!, key: key! }
}

/** Keys are cut nowhere: they are copied into the next command. */
export function nameOf({ account, operation, key }: RecordId): string {
  return `${account} ${operation} ${key}`
}
