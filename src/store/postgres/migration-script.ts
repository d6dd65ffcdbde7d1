import { LIMITS } from '../../core/limits.ts'
import { lockOf } from './migrate.ts'
import type { Migration } from './migration-files.ts'
import { COMPLETE_LEDGER, CREATE_LEDGER, INSERT_LEDGER } from './sql/ledger.ts'

/**
 * Migrations as one script, for a person who applies them by hand: the same statements in the same order as `migrate` sends them, in one
 * transaction, with their entries in the ledger. Applied twice, the second fails at the ledger and changes nothing.
 *
 * @example
 * migrationScript('onlyonce', plan.pending, { createSchema: true })
 */
export function migrationScript(
  schema: string,
  migrations: readonly Migration[],
  { createSchema }: { readonly createSchema: boolean },
): string {
  if (migrations.length === 0) return `-- The schema ${schema} is up to date.\n`
  const parts = migrations.map(({ version, name, text, checksum, requires }) => {
    const values = [`${version}`, literal(name), literal(checksum), `${requires}`]
    return `-- ${name}\n${text.trimEnd()}\n\n${fill(INSERT_LEDGER, values)};`
  })
  const lines = [
    `-- Migrations of onlyonce for the schema ${schema}: ${migrations.map(({ name }) => name).join(', ')}.`,
    'BEGIN ISOLATION LEVEL READ COMMITTED;',
    `SET LOCAL lock_timeout = ${LIMITS.migrationWaitMaxMs};`,
    `SELECT pg_advisory_xact_lock(${lockOf(schema)});`,
    ...(createSchema ? [`CREATE SCHEMA IF NOT EXISTS ${schema};`] : []),
    `SET LOCAL search_path TO ${schema};`,
    `${CREATE_LEDGER};`,
    `${COMPLETE_LEDGER};`,
  ]
  return `${lines.join('\n')}\n\n${parts.join('\n\n')}\n\nCOMMIT;\n`
}

/** Names and checksums of ours: neither has a quote in it, and none of them comes from a caller. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

function fill(statement: string, values: readonly string[]): string {
  return statement.replaceAll(/\$(\d)/g, (_, number) => values[Number(number) - 1]!)
}
