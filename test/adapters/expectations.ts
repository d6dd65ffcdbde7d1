import { expect } from 'vitest'
import { ERRORS } from '../../src/entries/errors.ts'
import type { ErrorCode } from '../../src/index.ts'
import type { Received } from './client.ts'

/** What is stored and replayed of the headers, whatever the route says. */
const KEPT = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-location',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'vary',
]

/** A replay is the first reply: status, bytes, and every header that is kept. */
export function expectReplay(first: Received, again: Received): void {
  expect(first.headers['idempotent-replayed']).toBeUndefined()
  expect(again.status).toBe(first.status)
  expect(again.headers['idempotent-replayed']).toBe('true')
  expect(Buffer.compare(again.body, first.body)).toBe(0)
  for (const name of KEPT) expect([name, again.headers[name]]).toEqual([name, first.headers[name]])
}

/** An answer of the boundary's own, as the table of errors has it. */
export function expectProblem(
  received: Received,
  code: ErrorCode,
  expected: { readonly status?: number; readonly retryAfter?: boolean } = {},
): void {
  const { status, retryable, executed } = ERRORS[code]
  const said =
    received.headers['content-type'] === 'application/problem+json' ? received.json() : received.text
  expect(said).toMatchObject({ code, retryable, executed, status: expected.status ?? status })
  expect(said.type).toMatch(new RegExp(`/${code}$`))
  expect(received.status).toBe(expected.status ?? status)
  expect(received.headers['cache-control']).toBe('no-store')
  expect(received.headers['idempotent-replayed']).toBeUndefined()
  const retryAfter = received.headers['retry-after']
  const passes = received.status === 503 && retryable
  if (expected.retryAfter === true || passes) expect(Number(retryAfter)).toBeGreaterThanOrEqual(1)
  else expect(retryAfter).toBeUndefined()
}
