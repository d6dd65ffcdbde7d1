/** The rights that roles need, as statements. docs/guides/operating.md says what each of them is for. */

/** Who the role is: a process of the service, a person who decides, or one who only looks. */
export type GrantedTo = 'service' | 'operator' | 'reader'

const SERVICE = 'SELECT, INSERT, UPDATE, DELETE'
/** For a role that leaves pruning to another. */
const SERVICE_WITHOUT_DELETE = 'SELECT, INSERT, UPDATE'

/** What a start of the service asks for, and what decisions and evidence write. */
const OF_OPERATOR: readonly (readonly [rights: string, tables: readonly string[]])[] = [
  ['INSERT, UPDATE', ['records', 'key_ids', 'void_calls', 'evidence']],
  ['INSERT', ['attempts', 'audit']],
]

/**
 * The statements that give a role its rights, in order. `role` is quoted already. They are run by the role that applies the migrations:
 * the last ones are about tables that it will make.
 *
 * @example
 * grantsFor('onlyonce', '"app"', 'service', { mayDelete: true })
 */
export function grantsFor(
  schema: string,
  role: string,
  to: GrantedTo,
  { mayDelete }: { readonly mayDelete: boolean },
): readonly string[] {
  const usage = `GRANT USAGE ON SCHEMA ${schema} TO ${role}`
  switch (to) {
    case 'service': {
      const rights = mayDelete ? SERVICE : SERVICE_WITHOUT_DELETE
      return [
        usage,
        `GRANT ${rights} ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
        `GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO ${role}`,
        `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT ${rights} ON TABLES TO ${role}`,
        `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT USAGE ON SEQUENCES TO ${role}`,
      ]
    }
    case 'operator': {
      const named = (tables: readonly string[]) => tables.map((name) => `${schema}.${name}`).join(', ')
      return [
        usage,
        ...readingOf(schema, role),
        ...OF_OPERATOR.map(([rights, tables]) => `GRANT ${rights} ON ${named(tables)} TO ${role}`),
      ]
    }
    case 'reader':
      return [usage, ...readingOf(schema, role)]
    default:
      return to satisfies never
  }
}

/** Without the secrets of webhooks, which are plain where nothing is sealed, and without the one that stands in for a secret of the service. */
function readingOf(schema: string, role: string): readonly string[] {
  return [
    `GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
    `REVOKE ALL ON ${schema}.webhook_secrets, ${schema}.made_secrets FROM ${role}`,
  ]
}
