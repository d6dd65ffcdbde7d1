import type { TSchema } from 'typebox'
import { Type } from 'typebox'
import { Refused } from '../problems.ts'
import { API_LIMITS } from './limits.ts'

const { pageDefault, pageMax, cursorLengthMax } = API_LIMITS

/** The members of a query that every list has. Spread them into the schema of the query. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: pageMax, default: pageDefault, description: 'How many at most.' }),
  ),
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: cursorLengthMax,
      description: 'The next_cursor of the page before.',
    }),
  ),
}

/** A page of things, as it is answered. */
export function pageSchema<T extends TSchema>(item: T) {
  return Type.Object({
    data: Type.Array(item),
    has_more: Type.Boolean(),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
  })
}

export interface PageRequest {
  readonly limit: number
  /** The position behind which the page begins; null for the first one. */
  readonly after: readonly string[] | null
}

/** What a position is made of: for each part, what it looks like. */
export interface List {
  /** A cursor of one list is none of another. */
  readonly name: string
  readonly position: readonly RegExp[]
}

/** The position of things that are listed by their id, the newest first. */
export const BY_ID = (name: string, prefix: string): List => ({
  name,
  position: [new RegExp(`^${prefix}_[0-9a-f]{32}$`)],
})

/**
 * What a query asks for. A cursor is a position and gives no right to anything: the list is still that of the caller's
 * account. It is checked, so that one that was changed or made up is refused, and not passed on.
 *
 * @example
 * const { limit, after } = readPage(PAYMENTS, request.query)
 * const rows = await listPayments(pool, account, { after: after?.[0] ?? null, limit: limit + 1 })
 * return pageOf(PAYMENTS, rows.map(present), limit, (payment) => [payment.id])
 */
export function readPage(
  list: List,
  query: { readonly limit?: number; readonly cursor?: string },
): PageRequest {
  const limit = query.limit ?? pageDefault
  return { limit, after: query.cursor === undefined ? null : readCursor(list, query.cursor) }
}

/** A page of what was read. Read one more than the limit: it tells whether there is a next page. */
export function pageOf<T>(
  list: List,
  found: readonly T[],
  limit: number,
  positionOf: (item: T) => readonly string[],
) {
  const data = found.slice(0, limit)
  const hasMore = found.length > limit
  return {
    data,
    has_more: hasMore,
    next_cursor: hasMore ? writeCursor(list, positionOf(data.at(-1)!)) : null,
  }
}

export function writeCursor(list: List, position: readonly string[]): string {
  return Buffer.from(JSON.stringify([list.name, ...position])).toString('base64url')
}

function readCursor(list: List, cursor: string): readonly string[] {
  try {
    const bytes = Buffer.from(cursor, 'base64url')
    const [name, ...position] = JSON.parse(bytes.toString('utf8'))
    const fits =
      name === list.name &&
      bytes.toString('base64url') === cursor &&
      position.length === list.position.length &&
      list.position.every((form, i) => typeof position[i] === 'string' && form.test(position[i]))
    if (fits) return position
  } catch {}
  throw new Refused('invalid_request', {
    field: 'cursor',
    detail: 'cursor is not the next_cursor of a page of this list.',
  })
}
