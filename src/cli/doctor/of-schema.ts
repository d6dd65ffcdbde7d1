/** The tables of the library: whether they are what this version needs, and whether the role may use them. */
import type { Facts } from './facts.ts'
import { type Finding, finding, ok } from './findings.ts'

export function judgeSchema(facts: Facts): readonly Finding[] {
  return [...migrations(facts), ...rights(facts), ...indexes(facts), ...triggers(facts), ...bloat(facts)]
}

function migrations({ schema, migrations }: Facts): readonly Finding[] {
  const { state, pending, trouble } = migrations
  const advice = 'Run `onlyonce migrate` with a role that may create tables.'
  switch (state) {
    case 'up_to_date':
      return [ok('schema', `The schema ${schema} is up to date.`)]
    case 'missing':
      return [
        finding(
          'error',
          'schema',
          `The schema ${schema} has no tables of the library.`,
          `${advice} Or name the schema with --schema.`,
        ),
      ]
    case 'pending':
      return [finding('error', 'schema', `The schema ${schema} lacks ${pending.join(', ')}.`, advice)]
    case 'unknown':
      return [
        finding(
          'error',
          'schema',
          trouble ?? 'The schema cannot be compared.',
          'Use the version of onlyonce that the service uses, and see docs/guides/operating.md.',
        ),
      ]
    default:
      return state satisfies never
  }
}

/** What every request needs. DELETE is not among it. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  records: ['SELECT', 'INSERT', 'UPDATE'],
  attempts: ['SELECT', 'INSERT'],
  key_ids: ['SELECT', 'INSERT', 'UPDATE'],
  migrations: ['SELECT'],
}

function rights({ schema, server, inSchema }: Facts): readonly Finding[] {
  const has = inSchema.rights
  if (has === null) return []
  const advice = `Run what \`onlyonce grants --role ${server.role}\` prints, as the role that applies the migrations.`
  if (!has.usage)
    return [
      finding('error', 'rights', `The role ${server.role} lacks USAGE on the schema ${schema}.`, advice),
    ]
  const found = inSchema.missingRights.flatMap(({ table, missing }) => {
    const needed = NEEDED[table]?.filter((right) => missing.split(', ').includes(right)) ?? []
    const sentence = `The role ${server.role} lacks ${missing} on ${schema}.${table}.`
    return needed.length > 0
      ? [finding('error', 'rights', `${sentence} No request works without ${needed.join(', ')}.`, advice)]
      : []
  })
  const others = inSchema.missingRights.filter(({ table, missing }) => {
    const needed = NEEDED[table]?.some((right) => missing.split(', ').includes(right)) ?? false
    return !needed && table !== 'migrations'
  })
  if (others.length > 0) {
    const tables = others.map(({ table, missing }) => `${missing} on ${table}`).join('; ')
    found.push(
      finding(
        'notice',
        'rights',
        `The role ${server.role} also lacks ${tables}.`,
        'docs/guides/operating.md says which process needs which of them. Without DELETE another role has to run the reaper.',
      ),
    )
  }
  if (server.superuser || has.owns || has.creates) {
    const why = server.superuser
      ? 'is a superuser'
      : has.owns
        ? `owns the schema ${schema}`
        : `may create tables in ${schema}`
    found.push(
      finding(
        'notice',
        'rights',
        `The role ${server.role} ${why}.`,
        `Run migrations with one role and the service with another: \`onlyonce grants --role app\`, and migrate: 'verify' in postgres().`,
      ),
    )
  }
  return found.length > 0
    ? found
    : [ok('rights', `The role ${server.role} may do what the service does, and no more.`)]
}

function indexes({ inSchema, migrations }: Facts): readonly Finding[] {
  if (migrations.state === 'missing') return []
  const { missingIndexes, invalidIndexes } = inSchema
  const found: Finding[] = []
  // Those of migrations that are still to come are no loss.
  if (migrations.state === 'up_to_date' && missingIndexes.length > 0) {
    found.push(
      finding(
        'error',
        'indexes',
        `Missing: ${missingIndexes.join(', ')}.`,
        'Create them as `onlyonce migrate --print` writes them, with CONCURRENTLY: without them workers read whole tables.',
      ),
    )
  }
  if (invalidIndexes.length > 0) {
    found.push(
      finding(
        'error',
        'indexes',
        `Not valid: ${invalidIndexes.join(', ')}.`,
        'Run REINDEX INDEX CONCURRENTLY on each: one that was built halfway helps no reader and slows every writer.',
      ),
    )
  }
  return found.length > 0 ? found : [ok('indexes', 'All indexes are there.')]
}

function triggers({ inSchema }: Facts): readonly Finding[] {
  if (inSchema.disabledTriggers.length === 0) return []
  const names = inSchema.disabledTriggers.join(', ')
  return [
    finding(
      'error',
      'audit',
      `Triggers are turned off: ${names}.`,
      'ALTER TABLE … ENABLE TRIGGER: without them the audit can be changed.',
    ),
  ]
}

/** Below this a table is small however it looks. */
const DEAD_MIN = 10_000
const DEAD_SHARE = 0.3

function bloat({ inSchema, settings }: Facts): readonly Finding[] {
  const found: Finding[] = []
  if (settings.get('autovacuum') === 'off') {
    found.push(
      finding(
        'error',
        'bloat',
        'autovacuum is off.',
        'Turn it on: records come and go, and nothing else gives their space back.',
      ),
    )
  }
  for (const { name, live, dead, sizeBytes, unvacuumed } of inSchema.tables) {
    if (unvacuumed) {
      found.push(
        finding(
          'warning',
          'bloat',
          `autovacuum is off for ${name}.`,
          `ALTER TABLE ${name} RESET (autovacuum_enabled).`,
        ),
      )
    }
    if (dead < DEAD_MIN || dead < (live + dead) * DEAD_SHARE) continue
    const size = `${Math.round(sizeBytes / 1_048_576)} MiB`
    const advice = `VACUUM ${name}; look for transactions that stay open for hours, and let autovacuum run more often on it (autovacuum_vacuum_scale_factor).`
    found.push(
      finding(
        'warning',
        'bloat',
        `${dead} of the ${live + dead} rows of ${name} (${size}) are dead.`,
        advice,
      ),
    )
  }
  if (inSchema.tables.length === 0) return found
  return found.length > 0 ? found : [ok('bloat', 'No table is bloated.')]
}
