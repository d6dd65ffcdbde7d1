/** The service's connections to its database: one pool for its work, one for what only reads, and a small one for its limits alone. */
import { LIMITS } from 'onlyonce/limits'
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
    ...(database.kind === 'url' && { max: database.poolSize }),
    connectionTimeoutMillis: LIMITS.connectionWaitMaxMs,
    keepAlive: true,
    ...sessionOptions(config, {
      lock_timeout: LIMITS.lockWaitMaxMs,
      idle_in_transaction_session_timeout: LIMITS.idleInTransactionMaxMs,
    }),
  }
}

/** What only reads: the server ends what takes too long, and what brings no answer at all is given up here. */
export function readsPoolOptions(config: Config, url: string): pg.PoolConfig {
  const { database } = config
  return {
    connectionString: url,
    max: database.kind === 'url' ? database.readsPoolSize : SERVICE_LIMITS.readsPoolSize,
    connectionTimeoutMillis: LIMITS.connectionWaitMaxMs,
    query_timeout: SERVICE_LIMITS.readMaxMs + SERVICE_LIMITS.readAnswerMarginMs,
    keepAlive: true,
    ...sessionOptions(config, {
      statement_timeout: SERVICE_LIMITS.readMaxMs,
      lock_timeout: LIMITS.lockWaitMaxMs,
      default_transaction_read_only: 'on',
    }),
  }
}

/**
 * Limits have connections of their own: in one pool with the traffic, the traffic that is to be limited would keep them from counting.
 * A statement that waits for a row gives its connection back soon: the rows of one account must not take the connections of all.
 */
export function limitsPoolOptions(config: Config, url: string): pg.PoolConfig {
  const { waitMaxMs, velocityWaitMaxMs, poolSize } = config.limits
  const longestMs = Math.max(waitMaxMs, velocityWaitMaxMs)
  const statementMs = longestMs + SERVICE_LIMITS.limitsStatementMarginMs
  return {
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: longestMs,
    // For servers behind a pooler, and for connections on which nothing comes back.
    query_timeout: statementMs,
    keepAlive: true,
    ...sessionOptions(config, { lock_timeout: waitMaxMs, statement_timeout: statementMs }),
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
