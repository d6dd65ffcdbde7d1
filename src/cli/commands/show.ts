import { operator, type Shown } from '../../operator/index.ts'
import type { Reply } from '../../record/index.ts'
import { type Command, ENCRYPTION } from '../command.ts'
import { EXIT } from '../exit.ts'
import { withOnce } from '../open.ts'
import { pairs, plain, table } from '../table.ts'
import { showTime } from '../times.ts'
import { AsIs } from '../wire.ts'
import { showExplanation } from './explain.ts'
import { RECORD_ID, recordId } from './record-id.ts'

export const SHOW: Command = {
  name: 'show',
  summary: 'Shows one record with everything that operators have decided about it.',
  takes: RECORD_ID,
  about: [
    'What explain tells, with the record itself and its audit. The stored reply and the results of steps may hold what customers have sent: they are shown only when they are asked for, and opened with ONLYONCE_ENCRYPTION where they are sealed.',
  ],
  options: [
    { name: 'reply', text: 'Show the stored reply too.' },
    {
      name: 'results',
      text: 'Show what the steps of an unfinished operation have brought, and evidence about its calls.',
    },
    ENCRYPTION,
  ],
  examples: ['onlyonce show acct_1 payments.create 8e03978e-40d5-43e8-bc93-6894a57f9324 --results'],
  async run(call) {
    const options = { reply: call.values.has('reply'), results: call.values.has('results') }
    const shown = await withOnce(call, ({ once }) => operator(once).show(recordId(call), options))
    call.output.print(forPrograms(shown), () => forPeople(shown))
    return shown.record === null && shown.audit.length === 0 ? EXIT.found : EXIT.ok
  },
}

/** What is the customer's own keeps its names. */
function forPrograms({ reply, results, ...shown }: Shown): unknown {
  return {
    ...shown,
    reply:
      reply === null ? null : { status: reply.status, headers: new AsIs(reply.headers), body: bodyOf(reply) },
    results:
      results === null
        ? null
        : {
            steps: results.steps.map((step) => ({ ...step, result: new AsIs(step.result) })),
            evidence: results.evidence.map((told) => ({ ...told, result: new AsIs(told.result) })),
            discarded: results.discarded.map((one) => ({ ...one, result: new AsIs(one.result) })),
          },
  }
}

/** As text; in base64 where it is none. Null: it was too large to be kept. */
function bodyOf({ body }: Reply): { readonly text: string } | { readonly base64: string } | null {
  if (body === null) return null
  const text = body.toString('utf8')
  return Buffer.from(text).equals(body) ? { text } : { base64: body.toString('base64') }
}

function forPeople(shown: Shown): string {
  const { record, audit, reply, results } = shown
  const parts = [showExplanation(shown)]
  if (record !== null) {
    const ofRecord = pairs([
      ['fence', record.fence],
      ['version', record.version],
      ['last durable step', record.recoveryPoint],
      ['looks', record.looks === 0 ? null : record.looks],
      ['deadline', showTime(record.deadlineAt)],
      ['void calls', record.voidCalls.join(', ')],
    ])
    parts.push(ofRecord)
  }
  if (audit.length > 0) {
    const rows = audit.map((one) => [showTime(one.at), one.action, one.from, one.to, one.by, one.why])
    parts.push(table(['decided', 'action', 'from', 'to', 'by', 'why'], rows))
  }
  if (reply !== null) parts.push(showReply(reply))
  for (const { name, kind, result } of results?.steps ?? []) {
    parts.push(`step ${plain(name)} (${kind}): ${plain(JSON.stringify(result) ?? 'nothing')}\n`)
  }
  for (const { key, receivedAt, result } of results?.evidence ?? []) {
    parts.push(
      `evidence about ${plain(key)}, ${showTime(receivedAt)}: ${plain(JSON.stringify(result) ?? 'nothing')}\n`,
    )
  }
  for (const { key, step, result, readable } of results?.discarded ?? []) {
    const what = readable
      ? plain(JSON.stringify(result) ?? 'nothing')
      : '(sealed with a key that is not given)'
    parts.push(`discarded of ${plain(key)}${step === null ? '' : `, step ${plain(step)}`}: ${what}\n`)
  }
  return parts.join('\n')
}

function showReply(reply: Reply): string {
  const headers = reply.headers.map(([name, value]) => `${name}: ${value}`)
  const body = bodyOf(reply)
  const shown = body === null ? '(too large, not kept)' : 'text' in body ? body.text : `base64 ${body.base64}`
  return `reply ${reply.status}\n${[...headers, '', shown].map((line) => `  ${plain(line)}`.trimEnd()).join('\n')}\n`
}
