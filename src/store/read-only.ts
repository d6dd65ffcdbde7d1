import { faultBehind } from './postgres/classify.ts'

/**
 * Whether an error says that the database only reads: a standby, or a server that is switched over. It refuses a write before it begins
 * it, so nothing was written, unlike where a store is away and an answer may have been lost.
 */
export function isReadOnly(error: unknown): boolean {
  return faultBehind(error) === 'not_primary'
}
