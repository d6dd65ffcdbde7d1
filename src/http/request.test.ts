import { describe, expect, it } from 'vitest'
import { type BoundaryRequest, headerOf, timeLeftMs } from './request.ts'

const NOW_MS = Date.parse('2030-01-01T00:00:00Z')

function requestWith(headers: Readonly<Record<string, string | readonly string[]>>): BoundaryRequest {
  return {
    method: 'POST',
    route: '/things',
    path: '/things',
    pathParams: {},
    query: '',
    account: 'acct_1',
    header: (name) => headers[name],
    body: async () => ({ kind: 'raw', bytes: Buffer.alloc(0) }),
  }
}

const left = (value: string | readonly string[]) =>
  timeLeftMs(requestWith({ deadline: value }), 'deadline', () => NOW_MS)

describe('the time that a client has left', () => {
  it('is not limited where no header is asked for, or none was sent', () => {
    expect(timeLeftMs(requestWith({ deadline: '1' }), null, () => NOW_MS)).toBeNull()
    expect(timeLeftMs(requestWith({}), 'deadline', () => NOW_MS)).toBeNull()
  })

  it.each([
    [`${NOW_MS + 5}`, 5],
    [` ${NOW_MS - 5} `, -5],
    ['2030-01-01T00:00:01Z', 1_000],
    ['2030-01-01T01:00:00.250+01:00', 250],
    ['2030-01-01T00:01Z', 60_000],
  ])('is read from %s', (value, expected) => expect(left(value)).toBe(expected))

  it.each([
    '',
    'soon',
    '-1',
    '1.5',
    '1e12',
    '2030-01-01',
    '2030-01-01T00:00:00',
    '2030-13-01T00:00:00Z',
    '9'.repeat(16),
    '9'.repeat(14),
    '1000',
    `${NOW_MS / 1_000}`,
  ])('is not read from %j', (value) =>
    expect(() => left(value)).toThrow(expect.objectContaining({ code: 'deadline_invalid' })),
  )

  it('is not read from two headers', () =>
    expect(() => left(['1', '2'])).toThrow(expect.objectContaining({ code: 'deadline_invalid' })))
})

it('the first header that is there carries the key', () => {
  const request = requestWith({ b: 'two', c: 'three' })
  expect(headerOf(request, ['a', 'b', 'c'])).toBe('two')
  expect(headerOf(request, ['a'])).toBeUndefined()
})
