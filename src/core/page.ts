/** Lists come in pages. A cursor names a place in a list, and gives no right to anything. */
import { OnlyonceError } from './errors.ts'
import { LIMITS } from './limits.ts'

/**
 * One page of a list.
 *
 * @example
 * import { operator, type Page, type RecordSummary } from 'onlyonce/operator'
 *
 * let page: Page<RecordSummary> = await operator(once).list({ limit: 100 })
 * while (page.cursor !== null) page = await operator(once).list({ limit: 100, cursor: page.cursor })
 */
export interface Page<T> {
  readonly items: readonly T[]
  /** Pass it as `cursor` for the next page; null where there is none. */
  readonly cursor: string | null
}

/** What every list takes. */
export interface PageOptions {
  /**
   * How many items a page has at most; itself at most 500.
   *
   * @default 50
   */
  readonly limit?: number | undefined
  /**
   * Of the page before.
   *
   * @default the first page
   */
  readonly cursor?: string | null | undefined
}

/** The page of what was found, where one more than fits was asked for: it tells that there is a next page. */
export function pageOf<T, U>(
  found: readonly T[],
  limit: number,
  positionOf: (one: T) => readonly (string | number)[],
  show: (one: T) => U,
): Page<U> {
  const shown = found.slice(0, limit)
  return {
    items: shown.map(show),
    cursor: found.length > limit ? cursorOf(...positionOf(shown.at(-1)!)) : null,
  }
}

export function cursorOf(...parts: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/** The parts of a cursor, or null where there is none. Each is checked: a cursor comes from outside. */
export function readCursor<Parts extends readonly unknown[]>(
  cursor: unknown,
  ...checks: { readonly [I in keyof Parts]: (part: unknown) => part is Parts[I] }
): Parts | null {
  if (cursor === undefined || cursor === null) return null
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor as string, 'base64url').toString('utf8'))
    const fits = Array.isArray(parts) && parts.length === checks.length
    if (fits && checks.every((check, i) => check(parts[i]))) return parts as unknown as Parts
  } catch {}
  return refuse('cursor is not that of an earlier page.')
}

export function checkLimit(limit: unknown = LIMITS.listDefault): number {
  if (Number.isSafeInteger(limit) && (limit as number) >= 1 && (limit as number) <= LIMITS.listMax) {
    return limit as number
  }
  return refuse(`limit must be a whole number from 1 to ${LIMITS.listMax}.`)
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
