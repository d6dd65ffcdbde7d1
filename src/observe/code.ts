import { OnlyonceError } from '../core/errors.ts'
import { sqlState } from '../store/postgres/classify.ts'

/** What an error is called in metrics: a code of the table of errors, PostgreSQL's five characters, or `other`. */
export function codeOf(error: unknown): string {
  return error instanceof OnlyonceError ? error.code : (sqlState(error) ?? 'other')
}

export { reasonOf } from '../store/postgres/reason.ts'
