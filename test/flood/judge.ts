import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { PROBLEMS } from '../../apps/payments/problems.ts'
import type { Answered, Flooded } from './flood.ts'

const page = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

/** The codes and their statuses, as the documents have them. */
const DOCUMENTED = new Map<string, number>([
  ...[...page('reference/problems.md').matchAll(/^## (\w+)\n\nStatus (\d+)/gm)].map(
    ([, code, status]) => [code!, Number(status)] as const,
  ),
  ...Object.entries(PROBLEMS).map(([code, { status }]) => [code, status] as const),
])

/** Words of pg, of sockets, of PostgreSQL, and of stacks. None of them is for a client. */
const OF_A_DRIVER =
  /timeout exceeded|terminat|ECONN|EPIPE|ETIMEDOUT|pg-pool|node_modules|\bat \S+ \(|canceling statement|read timeout|not queryable|release is not|undefined/i

/** How often each answer came, for people who read a failure: `503 store_unavailable: 12`. */
export function tally({ answers, closed, unanswered }: Flooded): Record<string, number> {
  const counts: Record<string, number> = { closed, unanswered }
  for (const answer of answers) {
    const name = `${answer.status} ${codeOf(answer) ?? answer.type}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

/** Every request was answered, in time, with a success or with a problem that the documents have, and in their words. */
export function expectDocumented(flooded: Flooded): void {
  const wrong = flooded.answers.filter((answer) => !isDocumented(answer))
  expect({ wrong, tally: tally(flooded), unanswered: flooded.unanswered }).toEqual({
    wrong: [],
    tally: tally(flooded),
    unanswered: 0,
  })
}

function isDocumented(answer: Answered): boolean {
  if (OF_A_DRIVER.test(answer.text)) return false
  if (answer.status >= 200 && answer.status < 300) return true
  const code = codeOf(answer)
  return code !== null && answer.type === 'application/problem+json' && DOCUMENTED.get(code) === answer.status
}

export function codeOf({ text }: Pick<Answered, 'text'>): string | null {
  try {
    const { code } = JSON.parse(text) as { code?: unknown }
    return typeof code === 'string' ? code : null
  } catch {
    return null
  }
}
