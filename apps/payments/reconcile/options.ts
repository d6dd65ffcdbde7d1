import { parseArgs } from 'node:util'
import type { Mode } from '../gateway/index.ts'

const DAY_MS = 24 * 3_600_000

/** What `npm run reconcile` is asked for. */
export interface Options {
  readonly from: Date | null
  readonly to: Date | null
  /** Null: the one that there is a processor for. */
  readonly mode: Mode | null
  readonly json: boolean
}

/** Throws an error that names the option which is wrong. */
export function readOptions(args: readonly string[]): Options {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args: [...args],
    options: { from: text, to: text, mode: text, json: { type: 'boolean' } },
  })
  const { from, to, mode = null, json = false } = values
  if (mode !== null && mode !== 'test' && mode !== 'live') throw new Error('--mode is test or live.')
  return { from: readTime('--from', from), to: readTime('--to', to), mode, json }
}

function readTime(name: string, text: string | undefined): Date | null {
  if (text === undefined) return null
  const form = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/
  const time = new Date(form.test(text) ? text : Number.NaN)
  // There is no 30th of February, but it would be taken for a day in March.
  if (Number.isNaN(time.getTime()) || !time.toISOString().startsWith(text.slice(0, 10))) {
    throw new Error(`${name} is a date such as 2026-03-01, or a time such as 2026-03-01T12:00:00Z.`)
  }
  return time
}

/** Where nothing is said: up to the last midnight, and a day long. */
export function chooseTime(given: Pick<Options, 'from' | 'to'>, now: Date): { from: Date; to: Date } {
  const to = given.to ?? new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS)
  const from = given.from ?? new Date(to.getTime() - DAY_MS)
  if (from >= to) throw new Error(`--from is before --to, which is ${to.toISOString()}.`)
  return { from, to }
}
