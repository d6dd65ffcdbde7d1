import { CONVENTIONS } from '../src/client/conventions.ts'
import { judge } from '../src/client/judge.ts'
import { ERRORS } from '../src/core/errors.ts'
import { OF_OTHER_DOORS } from './client-answers.ts'

/** What the client does after an answer, and what a call comes to that ends with it. */
const MEANINGS: Readonly<Record<string, readonly [does: string, ends: string]>> = {
  'wait, unknown': ['waits until the deadline, and asks again', '`OutcomeUnknown`'],
  'retry, no': ['sends it again', '`NotExecuted`'],
  'retry, not_by_this_request': [
    'sends it again',
    '`NotExecuted`; `OutcomeUnknown` where another attempt is in doubt',
  ],
  'retry, unknown': ['sends it again', '`OutcomeUnknown`'],
  'return, not_by_this_request': [
    'stops',
    'the `Response`; `OutcomeUnknown` where another attempt is in doubt',
  ],
  'stop, unknown': ['stops', '`OutcomeUnknown`'],
  'stop, yes': ['stops', '`Executed`'],
}

/** The rows of the table in docs/guides/clients.md. */
export function answerRows(): string[] {
  const groups = new Map<string, string[]>()
  for (const [code, { status, retryable, executed }] of Object.entries(ERRORS)) {
    if (OF_OTHER_DOORS.test(code)) continue
    const headers = new Headers({ 'content-type': 'application/problem+json' })
    const verdict = judge(
      { status, headers },
      JSON.stringify({ code, retryable, executed }),
      CONVENTIONS.onlyonce,
    )
    const group = `${verdict.next}, ${verdict.executed}`
    groups.set(group, [...(groups.get(group) ?? []), `\`${code}\``])
  }
  const unnamed = [...groups.keys()].filter((group) => !Object.hasOwn(MEANINGS, group))
  if (unnamed.length > 0) throw new Error(`There is no sentence for ${unnamed.join('; ')}.`)
  return Object.entries(MEANINGS).map(
    ([group, [does, ends]]) => `| ${does} | ${ends} | ${groups.get(group)!.sort().join(', ')} |`,
  )
}
