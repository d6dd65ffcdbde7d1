import { readFileSync } from 'node:fs'

/** Codes of the service's own, by their status. docs/guides/payments/service.md names them. */
const OF_THE_SERVICE: Readonly<Record<string, number>> = {
  invalid_request: 400,
  card_number: 400,
  duplicate_intent: 409,
  request_given_up: 422,
  quota_exceeded: 429,
  limits_unavailable: 503,
  unauthorized: 401,
  mode_unavailable: 403,
  not_found: 404,
  request_timeout: 408,
  amount_too_large: 422,
  payment_state: 422,
  currency_mismatch: 422,
  balance_insufficient: 422,
  destination_unknown: 422,
  payment_declined: 402,
  capture_failed: 422,
  cancel_failed: 422,
  refund_failed: 422,
  rate_limited: 429,
  velocity_limited: 429,
  overloaded: 503,
  unavailable: 503,
  internal: 500,
}

/** Answers that a client may be told never under any fault: each is a defect, whatever the documentation says. */
const NEVER: ReadonlySet<string> = new Set([
  'internal',
  'handler_failed',
  'option_invalid',
  'steps_overlap',
  'operation_changed',
])

/** The documented answers: from the page of problems, and the service's own. */
export function documentedAnswers(docs: string): ReadonlyMap<string, ReadonlySet<number>> {
  const found = new Map<string, Set<number>>()
  const add = (code: string, status: number) => {
    if (!NEVER.has(code)) found.set(code, (found.get(code) ?? new Set()).add(status))
  }
  const page = readFileSync(`${docs}/reference/problems.md`, 'utf8')
  for (const [, code, status] of page.matchAll(/^## (\w+)\n+Status (\d{3})/gm)) add(code!, Number(status))
  for (const [code, status] of Object.entries(OF_THE_SERVICE)) add(code, status)
  // A route may answer 202 in place of 409.
  add('in_progress', 202)
  return found
}

/** What the pages for operators name as a reason for parking: every word that stands there as code. */
export function documentedReasons(docs: string): ReadonlySet<string> {
  const pages = ['guides/operating', 'guides/operations', 'reference/errors'].map((name) =>
    readFileSync(`${docs}/${name}.md`, 'utf8'),
  )
  return new Set(pages.flatMap((page) => [...page.matchAll(/`([a-z][a-z_0-9]+)`/g)].map(([, word]) => word!)))
}
