import { randomUUID } from 'node:crypto'

/**
 * An id that no two processes make: a UUID of version 7 behind a prefix. The time in it only keeps neighbours
 * together in an index; nothing is ordered by it.
 */
export function newId(prefix: 'evt' | 'job'): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${prefix}_${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
