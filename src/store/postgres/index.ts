import pg from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import type { Store } from '../contract.ts'
import { checkOptions, type PostgresOptions } from './options.ts'
import { PostgresStore } from './store.ts'
import type { PostgresTx } from './tx.ts'

export { type Migrated, type MigrateOptions, migrate } from './migrate.ts'
export type { PostgresOptions } from './options.ts'
export type { PostgresTx } from './tx.ts'

/**
 * Keeps records in PostgreSQL (tested with 15 and 18), in a schema of their own, beside your tables.
 *
 * @example
 * const once = onlyonce({ store: postgres({ pool }), secret: process.env.ONLYONCE_SECRET })
 */
export function postgres(options: PostgresOptions): Store<PostgresTx> {
  const settings = checkOptions(options)
  if (options.pool !== undefined) return new PostgresStore(options.pool, false, settings)
  checkAddress(options.connectionString!)
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.poolSize ?? 10,
    // pg waits for ever by default, and a pool full of connections that were never answered never recovers.
    connectionTimeoutMillis: settings.connectionWaitMaxMs,
    keepAlive: true,
    // As settings of the session they cost nothing; otherwise each transaction has to set them. A pooler
    // may refuse settings at connection time.
    ...(settings.pooler === 'none' && {
      options: `-c lock_timeout=${settings.lockWaitMaxMs} -c idle_in_transaction_session_timeout=${settings.idleInTransactionMaxMs}`,
    }),
  })
  return new PostgresStore(pool, true, settings)
}

/** Before anything is asked for. The error of the parser is not passed on: it holds the whole address, and the password in it. */
function checkAddress(connectionString: string): void {
  try {
    // pg takes any text for the name of a database, and an empty one for a server on this machine.
    if (!/^(?:postgres(?:ql)?:\/\/|socket:\/|\/)/.test(connectionString)) throw new Error('no address')
    new pg.Client({ connectionString: connectionString })
  } catch {
    throw new OnlyonceError('option_invalid', {
      detail:
        'connectionString is no address of a database, such as postgres://user@host:5432/name. Percent-encode special characters in user and password.',
    })
  }
}
