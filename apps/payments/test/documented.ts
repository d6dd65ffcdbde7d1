/** Compares answers with the OpenAPI document: every answer that any test gets has to be named there. */
import { expect } from 'vitest'

interface Described {
  readonly responses: Readonly<Record<string, DescribedAnswer>>
}

interface DescribedAnswer {
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: Readonly<Record<string, { readonly schema?: { readonly allOf?: readonly unknown[] } }>>
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

export interface Answered {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever it is.
  readonly body: any
}

/** Statuses that each route was seen to answer, by `GET /v1/payments`. */
export type Seen = Map<string, Set<string>>

/** Headers that mean something to a client, and so have to be named where they come. */
const TELLING =
  /^(?:retry-after|www-authenticate|location|idempotent-replayed|ratelimit.*|stripe-.*|request-id)$/

/** In what an answer differs from the document. What is no route is answered by nobody's: there is nothing to compare. */
export function mismatchesOf(document: Document, answered: Answered, seen?: Seen): string[] {
  const { method, status, headers, body } = answered
  const path = answered.path.split('?', 1)[0]!
  const template = Object.keys(document.paths).find((one) => patternOf(one).test(path))
  const described = template === undefined ? undefined : document.paths[template]![method.toLowerCase()]
  if (described === undefined) return []
  const route = `${method} ${template}`
  if (seen !== undefined) seen.set(route, (seen.get(route) ?? new Set()).add(`${status}`))
  const what = `${route}: ${status} ${body?.code ?? ''}`
  const answer = described.responses[`${status}`]
  if (answer === undefined) return [`${what} is not there`]
  const type = headers.get('content-type')?.split(';', 1)[0]
  const unnamed = type === 'application/problem+json' && !codesOf(answer).includes(body.code)
  const named = new Set(Object.keys(answer.headers ?? {}).map((name) => name.toLowerCase()))
  const strange = [...headers.keys()].filter((name) => TELLING.test(name) && !named.has(name))
  return [
    ...(unnamed ? [`${what} has a code that is not there`] : []),
    ...strange.map((name) => `${what} has ${name}`),
  ]
}

export function expectDocumented(document: Document, answered: Answered): void {
  expect(mismatchesOf(document, answered), 'the document differs from the answer').toEqual([])
}

export function codesOf({ content }: DescribedAnswer): readonly string[] {
  const parts = content?.['application/problem+json']?.schema?.allOf ?? []
  return parts.flatMap(
    (part) => (part as { properties?: { code?: { enum: string[] } } }).properties?.code?.enum ?? [],
  )
}

function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
}
