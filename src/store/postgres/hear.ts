import type { Pool } from 'pg'

const heard = new WeakSet<Pool>()

/**
 * Listens to the errors of a pool and of all its clients, once for each pool. pg tells the loss of a connection by an event, and an
 * `error` event without a listener ends the process: the pool's own for an idle connection, the client's for one that is lent. A
 * pool that belongs to the user may have no listener. The loss itself is reported to the caller who uses the connection next.
 */
export function hearPool(pool: Pool): void {
  if (heard.has(pool) || typeof pool.on !== 'function') return
  heard.add(pool)
  pool.on('error', ignore)
  pool.on('connect', (client) => client.on('error', ignore))
}

function ignore(): void {}
