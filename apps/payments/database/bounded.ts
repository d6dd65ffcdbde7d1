import type { Queryable } from 'onlyonce'
import type pg from 'pg'
import { LIMITS } from '../limits.ts'

/**
 * For statements that a request waits for and that take a moment: one without an answer is given up, and its connection with it. A link on
 * which nothing comes back would otherwise keep the request, and all that wait behind it, until the operating system gives the link up.
 *
 * @example
 * const { authenticate } = authenticator(bounded(pool))
 */
export function bounded(pool: Pick<pg.Pool, 'query'>, max_ms: number = LIMITS.look_max_ms): Queryable {
  const query = (text: string, values: unknown[] = []) =>
    pool.query({ text, values, query_timeout: max_ms } as pg.QueryConfig)
  return { query: query as Queryable['query'] }
}
