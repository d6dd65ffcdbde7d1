import { OnlyonceError } from '../../core/errors.ts'
import type { Connections } from './connections.ts'
import { bind } from './flush.ts'
import type { Statements } from './statements.ts'

/**
 * Refuses to start where the role cannot write what every request needs. Without this the handlers run, and only afterwards the database
 * refuses to store what became of them. DELETE is not needed: without it expired records stay.
 */
export async function checkRights(
  connections: Connections,
  { findMissingRights }: Statements,
): Promise<void> {
  const { rows } = await connections.run(bind(findMissingRights))
  const missing = rows[0]!
  if (missing.length === 0) return
  const { schema } = connections.settings
  const told = missing.map(([table, rights]) => `${rights} on ${schema}.${table}`).join(', ')
  throw new OnlyonceError('store_misconfigured', {
    detail: `The role of this process lacks ${told}. Run GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO this role.`,
  })
}
