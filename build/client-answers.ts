/**
 * npm run client-answers
 *
 * Writes what the codes of the server mean to a client, from the table of errors, into a module of the client. The client is loaded by browsers,
 * and its size counts. So a code is left out where its status says the same, where the service itself is wrong (its status says less than the
 * code, never more, and the answer tells the rest), and where it answers no request with a key. src/client/answers.test.ts compares the module with
 * the table.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { meaningOf } from '../src/client/judge.ts'
import type { Evidence } from '../src/client/options.ts'
import { ERRORS, isMistake } from '../src/core/errors.ts'

export const ANSWERS = 'src/client/answers.generated.ts'

const HEAD = `/** Written from the table of errors by \`npm run client-answers\`. Change the table, then run it again. */
import type { Evidence } from './options.ts'

type Meaning = readonly [retryable: boolean, executed: Evidence]

const of = (retryable: boolean, executed: Evidence, codes: string): [string, Meaning][] =>
  codes.split(' ').map((code) => [code, [retryable, executed]])

/** Codes that mean something else than their status does: whether the request may be sent again, and what the answer proves. */
export const TOLD: Readonly<Record<string, Meaning>> = /* @__PURE__ */ Object.fromEntries([
`

/** Of webhooks on their way in, of locks, and of operators. */
export const OF_OTHER_DOORS =
  /^webhook_|^(?:decision_invalid|not_resolvable|record_changed|resource_invalid|lock_held|fence_stale)$/

/** What a code proves where the answer does not say it itself. */
export function provedBy(code: string, executed: Evidence): Evidence {
  // Another request was executed under the key, which says nothing about the caller's own.
  if (code === 'key_reused') return 'unknown'
  // With this code "no" may be the word of the work about one attempt: only the answer itself tells that it was proved for the key.
  return executed === 'no' ? 'not_by_this_request' : executed
}

/** The module. */
export function clientAnswers(): string {
  const groups = new Map<string, string[]>()
  for (const [code, { status, retryable, executed }] of Object.entries(ERRORS)) {
    const proved = provedBy(code, executed)
    const [byRetryable, byExecuted] = meaningOf(status)
    if (isMistake(code) || OF_OTHER_DOORS.test(code) || (byRetryable === retryable && byExecuted === proved))
      continue
    const group = `${retryable}, '${proved}'`
    groups.set(group, [...(groups.get(group) ?? []), code])
  }
  const lines = [...groups]
    .sort()
    .map(([group, codes]) => `  ...of(${group}, '${codes.sort().join(' ')}'),\n`)
  return `${HEAD}${lines.join('')}])\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(join(fileURLToPath(new URL('..', import.meta.url)), ANSWERS), clientAnswers())
}
