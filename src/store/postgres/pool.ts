import pg from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import type { PostgresSettings } from './options.ts'

/** A pool of our own, with the bounds of the settings. An address that is none is refused before anything is asked for. */
export function poolFor(connectionString: string, settings: PostgresSettings, size: number): pg.Pool {
  checkAddress(connectionString)
  return new pg.Pool({
    connectionString,
    max: size,
    // pg waits for ever by default, and a pool full of connections that were never answered never recovers.
    connectionTimeoutMillis: settings.connectionWaitMaxMs,
    keepAlive: true,
    // As settings of the session they cost nothing; otherwise each transaction has to set them. A pooler
    // may refuse settings at connection time.
    ...(settings.pooler === 'none' && {
      options: `-c lock_timeout=${settings.lockWaitMaxMs} -c idle_in_transaction_session_timeout=${settings.idleInTransactionMaxMs}`,
    }),
  })
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
