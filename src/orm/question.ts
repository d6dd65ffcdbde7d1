import { createHash } from 'node:crypto'
import type { QueryConfig } from 'pg'
import { LIMITS } from '../core/limits.ts'

/** A query as pg's client takes it: a text or an object, values, and perhaps a callback. */
export interface Question {
  readonly config: QueryConfig
  readonly callback: ((error: Error | null, result?: unknown) => void) | undefined
}

/** What pg reads of a query object. Read one by one: some libraries give objects whose members are inherited. */
const MEMBERS = [
  'text',
  'values',
  'name',
  'rowMode',
  'types',
  'binary',
  'queryMode',
  'query_timeout',
] as const

export function questionOf(config: unknown, values: unknown, callback: unknown): Question {
  if (config === null || config === undefined)
    throw new TypeError('Client was passed a null or undefined query')
  const given = (typeof config === 'string' ? { text: config } : config) as Record<string, unknown>
  const read: Record<string, unknown> = {}
  for (const name of MEMBERS) {
    if (given[name] !== undefined && given[name] !== null) read[name] = given[name]
  }
  if (typeof values === 'function') callback = values
  else if (values) read.values = values
  if (typeof read.name === 'string' && typeof read.text === 'string') read.name = nameOf(read.text)
  const told = callback ?? given.callback ?? undefined
  if (told !== undefined && typeof told !== 'function') throw new TypeError('callback is not a function')
  return { config: read as unknown as QueryConfig, callback: told as Question['callback'] }
}

const names = new Map<string, string>()

/**
 * The name of a prepared statement. Two ORMs may give one name to two texts, and the session that they come to knows names of others too. So the name is made
 * of the text, and the name that was given only says that the statement is to be prepared.
 */
function nameOf(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const made = `onlyonce_orm_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
  // Texts that are never the same would fill it: start over rather than grow.
  if (names.size >= LIMITS.statementsSeenMax) names.clear()
  names.set(text, made)
  return made
}
