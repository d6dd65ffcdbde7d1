/**
 * `npm run migrate [-- --grant payments_service]`: brings all tables of the service up to date, as the role of DATABASE_URL, and gives another role the
 * rights to use them. 0 if all is up to date, 1 if not. The service applies migrations at its start too; run with a role that may not, it only checks.
 */
import { parseArgs } from 'node:util'
import { migrate as migrateSchema } from 'onlyonce/postgres'
import { rateLimit } from 'onlyonce/rate-limits'
import pg from 'pg'
import { grant } from './grant.ts'
import { migrate } from './migrate.ts'

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { grant: { type: 'string', multiple: true, default: [] } } })
  const url = process.env.DATABASE_URL
  if (url === undefined || url === '')
    throw new Error('Set DATABASE_URL to the database, as the role that owns its tables.')
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  // A connection that breaks is told by the statement that fails.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  try {
    const { applied } = await migrateSchema(pool, { schema: 'onlyonce', mode: 'apply' })
    await migrate(pool)
    await rateLimit({ pool, name: 'migrate', points: 1, perMs: 1_000 }).start()
    for (const role of values.grant) await grant(pool, role)
    console.log(
      `The tables are up to date.${applied.length === 0 ? '' : ` Applied to onlyonce: ${applied.join(', ')}.`}`,
    )
  } finally {
    await pool.end()
  }
}

main().catch((error: unknown) => {
  console.error(
    `The tables could not be brought up to date: ${error instanceof Error ? error.message : error}`,
  )
  process.exitCode = 1
})
