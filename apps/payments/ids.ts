import { randomUUID } from 'node:crypto'

/**
 * An id that no two processes make: a prefix for people, and a UUID of version 7 without dashes. The time in it keeps
 * neighbours together in an index, and lists in about the order in which things were made. Nothing depends on it but how far
 * a search goes, which leaves room for clocks that differ.
 *
 * @example
 * makeId('pay') // 'pay_01928f3c5e7a7c3b9d2e4f5a6b7c8d9e'
 */
export function makeId(prefix: string): string {
  return `${firstIdAt(prefix, Date.now())}7${randomUUID().slice(15).replaceAll('-', '')}`
}

const FORM = /^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/

/** Whether this is an id with this prefix. Say no to anything else before the database is asked. */
export function isId(prefix: string, text: unknown): text is string {
  return typeof text === 'string' && text.startsWith(`${prefix}_`) && FORM.test(text.slice(prefix.length + 1))
}

/** What no id is below that was made at this time or later, by the clock of its process. */
export function firstIdAt(prefix: string, atMs: number): string {
  return `${prefix}_${Math.max(0, atMs).toString(16).padStart(12, '0')}`
}

/** When an id was made, by the clock of its process. */
export function timeOfId(id: string): number {
  const start = id.indexOf('_') + 1
  return Number.parseInt(id.slice(start, start + 12), 16)
}
