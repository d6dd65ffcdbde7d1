import type { Store } from '../contract.ts'
import { checkOptions, type PostgresOptions } from './options.ts'
import { poolFor } from './pool.ts'
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
  const pool = poolFor(options.connectionString!, settings, options.poolSize ?? 10)
  return new PostgresStore(pool, true, settings)
}
