/** Answers as the OpenAPI document names them. */
import { PROBLEM_TYPE } from '../problems.ts'
import { answersOf, type Code, entryOf, isKeyed, type RouteKind } from './answers.ts'

const text = (description: string) => ({ type: 'string', description })
const REQUEST_ID = { 'Request-Id': text('Names the request in our logs.') }
const REPLAYED = {
  'Idempotent-Replayed': text('true: this is the stored answer of an earlier request with the same key.'),
}
const RETRY_AFTER = { 'Retry-After': text('In how many seconds the same request is worth another try.') }
const LIMITED = {
  ...RETRY_AFTER,
  RateLimit: text('What is left, and when it is more.'),
  'RateLimit-Policy': text('How much is let through in which time.'),
  'Stripe-Should-Retry': text('true: the same request may be sent again.'),
  'Stripe-Rate-Limited-Reason': text(
    'Which limit it was: account-rate, account-concurrency, daily-quota, card-velocity, account-velocity or address-rate.',
  ),
}

/** All answers of a route: those of its schema, and every refusal with its codes. */
export function describeAnswers(route: RouteKind, response: unknown): Record<string, unknown> {
  const keyed = isKeyed(route)
  const done = Object.entries((response ?? { 200: TEXT }) as Record<string, object>)
  return Object.fromEntries([
    ...done.map(([status, schema]) => [status, success(schema, Number(status), keyed, route)] as const),
    ...[...answersOf(route)].map(([status, codes]) => [`${status}`, refusal(status, codes, keyed)] as const),
  ])
}

function success(schema: object, status: number, keyed: boolean, { url }: RouteKind) {
  const headers = {
    ...REQUEST_ID,
    ...(keyed && REPLAYED),
    ...(status === 201 && keyed && { Location: text('Where it can be read.') }),
    ...(url.startsWith('/v1/') && LIMITED),
  }
  const { description = DONE[status] ?? 'Done.', type } = schema as { description?: string; type?: string }
  if (type === 'null') return { description, headers, type }
  const media = type === 'string' ? 'text/plain' : 'application/json'
  return { description, headers, content: { [media]: { schema } } }
}

/** Of a route without a schema for its answer. */
const TEXT = { description: 'A text.', type: 'string' }

const DONE: Readonly<Record<number, string>> = {
  200: 'Done.',
  201: 'Made.',
  204: 'Done; there is nothing to tell.',
}

/** What each code means and what a client does next is the sentence that the problem itself has, where it has no better one. */
function refusal(status: number, codes: readonly Code[], keyed: boolean) {
  const description = codes.map((code) => `\`${code}\`: ${entryOf(code).message}`).join('\n\n')
  const schema = {
    allOf: [{ $ref: 'Problem#' }, { type: 'object', properties: { code: { type: 'string', enum: codes } } }],
  }
  return { description, headers: headersOf(status, keyed), content: { [PROBLEM_TYPE]: { schema } } }
}

/** Outcomes of a request are stored and replayed; every other refusal is not. */
const STORED: readonly number[] = [402, 422, 500]

function headersOf(status: number, keyed: boolean) {
  return {
    ...REQUEST_ID,
    ...(status === 401 && { 'WWW-Authenticate': text('Bearer.') }),
    ...(status !== 401 && LIMITED),
    ...(keyed && STORED.includes(status) && REPLAYED),
  }
}
