import pg from 'pg'

/** Anything that runs a statement. */
type Runs = Pick<pg.Pool, 'query'>

const OWNS = `SELECT pg_has_role(current_user, nspowner, 'USAGE') AS owns FROM pg_catalog.pg_namespace WHERE nspname = $1`

/** Those of the library and of the service. */
const SCHEMAS = ['onlyonce', 'payments'] as const

/**
 * Gives a role what the service needs, and no right to create, alter or drop anything. To be run by the role that owns the tables, once: what a later
 * migration of that role makes, it gives by itself. What was migrated is for the service to read alone, so that it cannot claim to be newer than it is.
 *
 * @example
 * await grant(pool, 'payments_service')
 */
export async function grant(pool: Runs, role: string): Promise<void> {
  const to = pg.escapeIdentifier(role)
  for (const schema of SCHEMAS) {
    // PostgreSQL answers a GRANT of a role that owns nothing with a warning, and does nothing.
    const { rows } = await pool.query(OWNS, [schema])
    if (rows[0]?.owns !== true)
      throw new Error(
        `The role of DATABASE_URL does not own the schema ${schema}. Use the role that made its tables.`,
      )
    await pool.query(`
      GRANT USAGE ON SCHEMA ${schema} TO ${to};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${to};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO ${to};
      REVOKE INSERT, UPDATE, DELETE ON ${schema}.migrations FROM ${to};
      ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${to};
      ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT USAGE ON SEQUENCES TO ${to};`)
  }
}
