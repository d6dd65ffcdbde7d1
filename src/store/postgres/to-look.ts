import type { Pool } from 'pg'
import type { Store } from '../contract.ts'
import { checkOptions, type PostgresOptions, type PostgresSettings } from './options.ts'
import { poolFor } from './pool.ts'
import { PostgresStore } from './store.ts'
import type { PostgresTx } from './tx.ts'

/** A few at once: what is shown of a record is asked side by side. */
const POOL_SIZE = 4

/** A database as an operator comes to it. */
export interface OpenedToLook {
  readonly pool: Pool
  readonly settings: PostgresSettings
  readonly store: Store<PostgresTx>
}

/**
 * A store that claims nothing, for those who look and decide. Its start checks the schema alone and writes nothing: a secret is needed
 * to compare requests, and such a process compares none. With a secret of its own it would be listed among those of the service.
 *
 * @example
 * const { store, pool } = openToLook({ connectionString, schema: 'onlyonce' })
 */
export function openToLook(
  options: Pick<PostgresOptions, 'schema' | 'pooler'> & { readonly connectionString: string },
): OpenedToLook {
  const settings = checkOptions({ ...options, migrate: 'verify' })
  const pool = poolFor(options.connectionString, settings, POOL_SIZE)
  return { pool, settings, store: new PostgresStore(pool, true, settings, 'to_look') }
}
