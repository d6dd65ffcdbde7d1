import { expect, it } from 'vitest'
import { decodeValue, encodeThrown, encodeValue, failureOfReply, HTTP_THROWN_SCHEMA } from './value.ts'

const problem = {
  ...encodeValue({ code: 'handler_failed' }),
  status: 500,
  schema: HTTP_THROWN_SCHEMA,
}

it('gives no value of a reply that stands for a throw, whichever door it came through', () => {
  for (const reply of [problem, encodeThrown(new Error('after the charge'))]) {
    expect(() => decodeValue(reply)).toThrow(expect.objectContaining({ code: 'handler_failed' }))
  }
  expect(decodeValue(encodeValue({ id: 1 }))).toEqual({ id: 1 })
})

it('says of a reply of HTTP that it holds no value, with a code of its own', () => {
  const http = { status: 200, headers: [], schema: 3, sealedBy: null }
  const told = (body: Buffer | null) => expect(() => decodeValue({ ...http, body }))
  told(Buffer.from('paid')).toThrow(expect.objectContaining({ code: 'reply_not_json', executed: 'unknown' }))
  told(null).toThrow(expect.objectContaining({ code: 'reply_not_kept', executed: 'yes' }))
  expect(decodeValue({ ...http, body: Buffer.alloc(0) })).toBe(undefined)
})

it('calls a reply a failure where a handler threw or replied with 5xx, and no other', () => {
  expect(failureOfReply(problem, 'handler')?.code).toBe('handler_failed')
  expect(failureOfReply({ status: 502, schema: 3 }, 'handler_recoverable')?.code).toBe('http_502')
  expect(failureOfReply({ status: 502, schema: 3 }, 'operation')).toBe(null)
  expect(failureOfReply({ status: 402, schema: 3 }, 'handler')).toBe(null)
})
