import { expect, it } from 'vitest'
import { replyOf } from './given-reply.ts'

const typeOf = (given: Parameters<typeof replyOf>[0]) =>
  replyOf(given).headers.find(([name]) => name === 'content-type')?.[1]

it.each([
  ['a text that is JSON', { status: 201, body: '{"id":7}' }, 'application/json'],
  ['bytes that are JSON', { status: 201, body: Buffer.from('[1]') }, 'application/json'],
  ['no body', { status: 204 }, undefined],
  ['a type of its own', { status: 200, body: '{}', headers: { 'Content-Type': 'text/plain' } }, 'text/plain'],
])('the content type of %s', (_, given, type) => expect(typeOf(given)).toBe(type))

it.each(['paid', '{"id":', Buffer.from([0xff, 0xfe])])(
  'refuses %j, which is not JSON and has no type',
  (body) => {
    expect(() => replyOf({ status: 200, body })).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  },
)
