import { invalidRequest } from '../http/failure.ts'
import type { Intent } from './index.ts'

export interface Term {
  readonly field: 'metadata' | 'status'
  /** Of metadata. */
  readonly name: string
  readonly value: string
}

const TEXT = String.raw`'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"`
const TERM = new RegExp(String.raw`\s*(?:metadata\[(?:${TEXT})\]|status):(?:${TEXT})\s*(AND\b|$)`, 'y')

/**
 * Of Stripe's query language: `metadata['name']:'value'` and `status:'succeeded'`, joined by AND, with metadata in it: that is what
 * the index here is about.
 */
export function parseQuery(query: string): Term[] {
  const terms: Term[] = []
  const pattern = new RegExp(TERM)
  let isOver = false
  while (!isOver) {
    const found = pattern.exec(query)
    if (found === null) throw unknown()
    const [, single, double, value, other, joint] = found
    const name = single ?? double
    const field = name === undefined ? 'status' : 'metadata'
    terms.push({ field, name: plain(name ?? ''), value: plain(value ?? other ?? '') })
    isOver = joint === ''
  }
  if (!terms.some(({ field }) => field === 'metadata')) throw unknown()
  return terms
}

export function matches(intent: Intent, terms: readonly Term[]): boolean {
  return terms.every(({ field, name, value }) =>
    field === 'status' ? intent.status === value : intent.metadata[name] === value,
  )
}

function plain(text: string): string {
  return text.replace(/\\(.)/g, '$1')
}

function unknown(): Error {
  return invalidRequest(
    "We were unable to parse your search query. Try metadata['name']:'value'.",
    undefined,
    'query',
  )
}
