import { OnlyonceError } from 'onlyonce'

/**
 * Whether an error says that the database cannot be asked now, or not to write: connections that cannot be made or were cut, a server
 * that starts, ends, is full, broken, too slow or refuses us, a pool that is full, and a server that only reads, as a standby does.
 */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof OnlyonceError) return AWAY.includes(error.code)
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  if (typeof code === 'string') return /^(?:08|28|3D|53|57|58|XX)|^25006$|^E[A-Z]+$/.test(code)
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout/.test(`${message}`)
}

/**
 * Whether the same statement may well succeed a moment later: the database is away, or another transaction was in the way, as one that
 * changes a table is. The classes are those that the library takes for passing (src/store/postgres/sql-states.ts).
 */
export function isNotNow(error: unknown): boolean {
  if (isDatabaseAway(error)) return true
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && /^(?:40|55)[0-9A-Z]{3}$/.test(code)
}

/** Whether the server answered and let us not in: waiting does not help against a wrong password or a missing database. */
export function isRefused(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && /^(?:28|3D)[0-9A-Z]{3}$/.test(code)
}

const AWAY: readonly string[] = ['store_unavailable', 'pool_exhausted']
