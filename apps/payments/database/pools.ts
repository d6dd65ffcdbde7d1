/** The service's connections to its database: one pool for its work, one for what only reads, and a small one for its limits alone. */
import { LIMITS } from 'onlyonce'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { LIMITS as SERVICE_LIMITS } from '../limits.ts'

export function poolerOf({ database }: Pick<Config, 'database'>): 'none' | 'transaction' {
  return database.kind === 'url' ? database.pooler : 'none'
}

export function poolOptions(config: Config, url: string): pg.PoolConfig {
  const { database } = config
  return {
    connectionString: url,
    ...(database.kind === 'url' && { max: database.pool_size }),
    connectionTimeoutMillis: LIMITS.connection_wait_max_ms,
    keepAlive: true,
    ...sessionOptions(config, {
      lock_timeout: LIMITS.lock_wait_max_ms,
      idle_in_transaction_session_timeout: LIMITS.idle_in_transaction_max_ms,
    }),
  }
}

/** What only reads: the server ends what takes too long, and what brings no answer at all is given up here. */
export function readsPoolOptions(config: Config, url: string): pg.PoolConfig {
  const { database } = config
  return {
    connectionString: url,
    max: database.kind === 'url' ? database.reads_pool_size : SERVICE_LIMITS.reads_pool_size,
    connectionTimeoutMillis: LIMITS.connection_wait_max_ms,
    query_timeout: SERVICE_LIMITS.read_max_ms + SERVICE_LIMITS.read_answer_margin_ms,
    keepAlive: true,
    ...sessionOptions(config, {
      statement_timeout: SERVICE_LIMITS.read_max_ms,
      lock_timeout: LIMITS.lock_wait_max_ms,
      default_transaction_read_only: 'on',
    }),
  }
}

/**
 * Limits have connections of their own: in one pool with the traffic, the traffic that is to be limited would keep them from counting.
 * A statement that waits for a row gives its connection back soon: the rows of one account must not take the connections of all.
 */
export function limitsPoolOptions(config: Config, url: string): pg.PoolConfig {
  const { wait_max_ms, velocity_wait_max_ms, pool_size } = config.limits
  const longest_ms = Math.max(wait_max_ms, velocity_wait_max_ms)
  const statement_ms = longest_ms + SERVICE_LIMITS.limits_statement_margin_ms
  return {
    connectionString: url,
    max: pool_size,
    connectionTimeoutMillis: longest_ms,
    // For servers behind a pooler, and for connections on which nothing comes back.
    query_timeout: statement_ms,
    keepAlive: true,
    ...sessionOptions(config, { lock_timeout: wait_max_ms, statement_timeout: statement_ms }),
  }
}

/** As settings of the session these cost nothing; otherwise each transaction has to set them. A pooler may refuse them. */
function sessionOptions(config: Config, settings: Readonly<Record<string, number | string>>) {
  if (poolerOf(config) !== 'none') return {}
  return {
    options: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
  }
}
