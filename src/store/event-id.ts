import { randomUUID } from 'node:crypto'

type Prefix = 'evt' | 'job' | 'we'

/**
 * An id that no two processes make: a UUID of version 7 behind a prefix. The time in it only keeps neighbours
 * together in an index; nothing is ordered by it.
 */
export function newId(prefix: Prefix): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${prefix}_${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/** The prefix is for people; the database holds the rest. */
export const withPrefix = (prefix: Prefix, uuid: string): string => `${prefix}_${uuid}`
export const withoutPrefix = (id: string): string => id.slice(id.indexOf('_') + 1)

const FORM = /^(?:evt|job|we)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
export const isId = (id: unknown): id is string => typeof id === 'string' && FORM.test(id)
