import { LIMITS } from '../../core/limits.ts'
import { type ListOptions, operator, type RecordSummary } from '../../operator/index.ts'
import { EDGES, type State } from '../../record/index.ts'
import type { Call, Command } from '../command.ts'
import { EXIT } from '../exit.ts'
import { withOnce } from '../open.ts'
import { table } from '../table.ts'
import { showTime } from '../times.ts'

const STATES = Object.keys(EDGES).filter((state) => state !== 'none')

export const LIST: Command = {
  name: 'list',
  summary: 'Lists records: the unfinished ones of all accounts by default, the oldest attempt first.',
  takes: [],
  about: [
    'Finished states are listed for one account at a time. With --account and --key all records of a key are listed, under every operation and in every state.',
  ],
  options: [
    { name: 'state', value: '<state>', many: true, choices: STATES, text: 'Only records in this state.' },
    { name: 'account', value: '<account>', text: 'Only records of this account.' },
    { name: 'operation', value: '<name>', text: 'Only records of this operation.' },
    { name: 'key', value: '<key>', text: 'Only records of this key. Needs --account.' },
    {
      name: 'failed',
      text: 'Completed records of handlers that threw or replied with 5xx: whether they took effect is not known.',
    },
    {
      name: 'older-than',
      value: '<duration>',
      text: 'Only those whose last attempt began so long ago: 90s, 10m, 24h, 7d.',
    },
    {
      name: 'limit',
      value: '<number>',
      text: `Records on one page, at most ${LIMITS.listMax}. Default: ${LIMITS.listDefault}.`,
    },
    { name: 'cursor', value: '<cursor>', text: 'Go on where another page ended.' },
  ],
  examples: ['onlyonce list --state parked', 'onlyonce list --state unknown --older-than 10m --json'],
  async run(call) {
    const options = optionsOf(call)
    const page = await withOnce(call, ({ once }) => operator(once).list(options))
    call.output.print(page, () => showRecords(page.items))
    if (page.cursor !== null) call.output.note(`There are more: --cursor ${page.cursor}`)
    return EXIT.ok
  },
}

function optionsOf({ values }: Call): ListOptions {
  const states = values.texts('state') as readonly State[]
  const given = {
    account: values.text('account'),
    operation: values.text('operation'),
    key: values.text('key'),
    olderThanMs: values.durationMs('older-than'),
    limit: values.whole('limit'),
    cursor: values.text('cursor'),
  }
  const told = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { ...told, ...(states.length > 0 && { states }), ...(values.has('failed') && { failed: true }) }
}

function showRecords(records: readonly RecordSummary[]): string {
  if (records.length === 0) return 'No such records.\n'
  const rows = records.map((record) => [
    record.state,
    record.account,
    record.operation,
    record.key,
    `${record.fence}`,
    showTime(record.attemptedAt),
    record.failure === null ? '' : `${record.failure.code}: ${record.failure.message}`,
  ])
  return table(['state', 'account', 'operation', 'key', 'fence', 'last attempt', 'failure'], rows)
}
