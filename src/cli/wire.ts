/** The JSON that programs read: names in snake_case, times as ISO 8601. */
import { showTime } from './times.ts'

/** Content of the user's own, such as the value of a reply: it is printed as it is. */
export class AsIs {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

const TIME = /(?:^since|Since|At|Until)$/

/**
 * What is printed with --json.
 *
 * @example
 * toWire({ createdAt: 0, replyStatus: 201 }) // { created_at: '1970-01-01T00:00:00.000Z', reply_status: 201 }
 */
export function toWire(value: unknown): unknown {
  if (value instanceof AsIs) return value.value
  if (Array.isArray(value)) return value.map(toWire)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      typeof member === 'number' && TIME.test(name) ? showTime(member) : toWire(member),
    ]),
  )
}
