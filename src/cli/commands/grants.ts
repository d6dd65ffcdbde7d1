import pg from 'pg'
import { type GrantedTo, grantsFor } from '../../store/postgres/grants.ts'
import { checkSchema } from '../../store/postgres/options.ts'
import type { Command } from '../command.ts'
import { EXIT } from '../exit.ts'
import { withPool } from '../open.ts'

export const GRANTS: Command = {
  name: 'grants',
  summary: 'Prints the rights that a role needs, or gives them.',
  takes: [],
  about: [
    'The statements are for the role that applies the migrations: the last of them concern tables that it will make later. An operator may look at everything but the secrets of webhooks, decide, and bring evidence; a reader may only look. Commands that change more (reap, rotate, erase, outbox replay, webhooks replay) need the rights of the service.',
  ],
  options: [
    { name: 'role', value: '<name>', text: 'The role. Required.' },
    {
      name: 'for',
      value: '<kind>',
      choices: ['service', 'operator', 'reader'],
      text: 'What the role does. Default: service.',
    },
    { name: 'no-delete', text: 'For a service that leaves the removal of expired records to another role.' },
    { name: 'apply', text: 'Give the rights now, in one transaction, instead of printing them.' },
  ],
  examples: ['onlyonce grants --role app', 'onlyonce grants --role support --for reader --apply'],
  async run(call) {
    const { values, settings, output } = call
    const role = pg.escapeIdentifier(values.required('role'))
    const to = (values.text('for') as GrantedTo | undefined) ?? 'service'
    const schema = checkSchema(settings.schema)
    const statements = grantsFor(schema, role, to, { mayDelete: !values.has('no-delete') })
    const script = statements.map((statement) => `${statement};\n`).join('')
    if (values.has('apply')) {
      await withPool(call, (pool) => pool.query(`BEGIN;\n${script}COMMIT;`))
    }
    output.print({ statements, applied: values.has('apply') }, () => script)
    if (values.has('apply')) output.note('These rights were given.')
    return EXIT.ok
  },
}
