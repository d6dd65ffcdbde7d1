import { migrate, planMigrations } from '../../store/postgres/migrate.ts'
import { shippedMigrations } from '../../store/postgres/migration-files.ts'
import { migrationScript } from '../../store/postgres/migration-script.ts'
import { checkSchema } from '../../store/postgres/options.ts'
import type { Call, Command } from '../command.ts'
import { EXIT, type ExitCode, usage } from '../exit.ts'
import { withPool } from '../open.ts'

export const MIGRATE: Command = {
  name: 'migrate',
  summary: 'Installs or upgrades the tables of the library.',
  takes: [],
  about: [
    "Needs a role that may create tables, and the schema where there is none. The service needs no such right: give it `migrate: 'verify'`, and run this before a deploy. Any number of processes may migrate at once: one applies, the others wait for it. All of it is one transaction.",
    'With --check nothing is changed: the exit code is 1 where something is to be applied. With --print the SQL is printed for a person who applies it; without a database it is that of all migrations.',
  ],
  options: [
    { name: 'check', text: 'Only look whether the tables are up to date.' },
    { name: 'print', text: 'Print the SQL of what is to be applied, as one transaction, and apply nothing.' },
    { name: 'to', value: '<number>', text: 'The last migration to apply. Nothing is ever taken back.' },
  ],
  examples: ['onlyonce migrate', 'onlyonce migrate --check', 'onlyonce migrate --print > upgrade.sql'],
  async run(call) {
    const { values } = call
    if (values.has('check') && values.has('print')) throw usage('Give --check or --print, not both.')
    const to = values.whole('to')
    if (to !== undefined && !shippedMigrations().some(({ version }) => version === to)) {
      throw usage(`--to is the number of a migration, from 1 to ${shippedMigrations().length}.`)
    }
    if (values.has('print')) return await print(call, to)
    return values.has('check') ? await check(call, to) : await apply(call, to)
  },
}

async function apply({ output, ...call }: Call, to: number | undefined): Promise<ExitCode> {
  const options = { mode: 'apply', ...(to !== undefined && { to }) } as const
  const { applied } = await withPool({ output, ...call }, (pool, schema) =>
    migrate(pool, { schema, ...options }),
  )
  output.print({ applied }, () =>
    applied.length === 0
      ? 'The schema is up to date.\n'
      : applied.map((name) => `applied ${name}\n`).join(''),
  )
  return EXIT.ok
}

async function check(call: Call, to = Number.POSITIVE_INFINITY): Promise<ExitCode> {
  const plan = await withPool(call, planMigrations)
  const pending = plan.pending.filter(({ version }) => version <= to).map(({ name }) => name)
  call.output.print({ applied: plan.applied, pending }, () =>
    pending.length === 0
      ? `The schema is up to date: ${plan.applied.length} migrations are applied.\n`
      : `${pending.map((name) => `to apply: ${name}\n`).join('')}Run \`onlyonce migrate\` with a role that may.\n`,
  )
  return pending.length === 0 ? EXIT.ok : EXIT.found
}

async function print(call: Call, to = Number.POSITIVE_INFINITY): Promise<ExitCode> {
  const { databaseUrl } = call.settings
  const schema = checkSchema(call.settings.schema)
  const plan =
    databaseUrl === null
      ? { pending: shippedMigrations(), schemaThere: false }
      : await withPool(call, planMigrations)
  const pending = plan.pending.filter(({ version }) => version <= to)
  const script = migrationScript(schema, pending, { createSchema: !plan.schemaThere })
  if (call.output.json) call.output.print({ pending: pending.map(({ name }) => name), sql: script }, () => '')
  else call.output.text(script)
  return EXIT.ok
}
