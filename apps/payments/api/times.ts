import { Type } from 'typebox'
import { Refused } from '../problems.ts'

const DAY = '\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])'
const CLOCK = '([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?'

/**
 * A time that a request names, as in RFC 3339. Not the `date-time` of schemas: that takes leap seconds and zones a day away, of
 * which the platform or the database knows nothing.
 */
export const Time = Type.String({
  maxLength: 40,
  pattern: `^${DAY}T${CLOCK}(Z|[+-](0\\d|1[0-4]):[0-5]\\d)$`,
  description: 'A day and a time with its zone, such as 2026-01-31T09:30:00Z.',
})

/** In milliseconds since the epoch. The form is checked by then; whether there is such a day is not. */
export function readTime(field: string, text: string): number {
  const atMs = Date.parse(text)
  const day = text.slice(0, 10)
  // The platform takes the 30th of February for the 1st of March, and the database takes neither.
  const isDay = new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
  if (isDay && atMs >= 0) return atMs
  throw new Refused('invalid_request', { field, detail: `${field} is no day and time since 1970.` })
}
