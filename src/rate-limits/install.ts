import type { ResolvedOptions } from './options.ts'
import { INSTALLED, install, RATES, VELOCITIES } from './sql.ts'

/** Makes the tables, unless they are there: a process without the right to make any can have them made before. */
export async function tablesOf({ pool, schema }: Pick<ResolvedOptions, 'pool' | 'schema'>): Promise<void> {
  const names = [`${schema}.${RATES}`, `${schema}.${VELOCITIES}`]
  const { rows } = await pool.query<{ installed: boolean }>(INSTALLED, names)
  if (rows[0]?.installed !== true) await pool.query(install(schema))
}
