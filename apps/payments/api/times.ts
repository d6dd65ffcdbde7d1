import { Refused } from '../problems.ts'

const TIME_MAX_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * A time of a query or a body, in milliseconds since the epoch. The form was checked by then; that does not make it a time that
 * there is, or one that the database can keep.
 */
export function readTime(text: string, field: string): number {
  const at_ms = Date.parse(text)
  if (at_ms >= 0 && at_ms <= TIME_MAX_MS) return at_ms
  throw new Refused('invalid_request', { field, detail: `${field} is no time from 1970 to 9999.` })
}
