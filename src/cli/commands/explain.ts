import type { Explanation } from '../../onlyonce/explain.ts'
import type { Command } from '../command.ts'
import { EXIT } from '../exit.ts'
import { withOnce } from '../open.ts'
import { pairs, table } from '../table.ts'
import { showTime } from '../times.ts'
import { RECORD_ID, recordId } from './record-id.ts'

export const EXPLAIN: Command = {
  name: 'explain',
  summary: 'Tells the story of one key: its state, every attempt, why it is so, and what happens next.',
  takes: RECORD_ID,
  about: [
    'The exit code is 1 where there is no record. That is no proof that nothing happened: the record may have been removed, or the operation may have another name.',
  ],
  options: [],
  examples: ['onlyonce explain acct_1 payments.create 8e03978e-40d5-43e8-bc93-6894a57f9324'],
  async run(call) {
    const told = await withOnce(call, ({ once }) => once.explain(recordId(call)))
    call.output.print(told, () => showExplanation(told))
    return told.state === 'none' ? EXIT.found : EXIT.ok
  },
}

export function showExplanation(told: Explanation): string {
  const { inDoubt } = told
  const head = pairs([
    ['state', told.state],
    ['why', told.why],
    ['next', told.next],
    ['reply status', told.replyStatus],
    ['settled by', told.settledBy],
    ['call in doubt', inDoubt?.key ?? null],
    ['its step', inDoubt?.step ?? null],
    ['in doubt since', showTime(inDoubt?.since ?? null)],
    ['used for', told.elsewhere.join(', ')],
    ['created', showTime(told.createdAt)],
    ['changed', showTime(told.changedAt)],
    ['lease until', showTime(told.leaseUntil)],
    ['looked at next', showTime(told.lookAt)],
    ['kept until', showTime(told.expiresAt)],
  ])
  if (told.attempts.length === 0) return head
  const rows = told.attempts.map(({ fence, outcome, owner, startedAt, endedAt, failure }) => [
    `${fence}`,
    outcome,
    showTime(startedAt),
    showTime(endedAt),
    owner,
    failure === null ? '' : `${failure.code}: ${failure.message}`,
  ])
  return `${head}\n${table(['fence', 'outcome', 'started', 'ended', 'owner', 'failure'], rows)}`
}
