import { describe, expect, it } from 'vitest'
import { ERRORS, type ErrorCode, OnlyonceError, type PlainCode } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { failureOf, withoutRequest } from './failure.ts'

const CARD = '4242424242424242'

describe('failureOf', () => {
  it.each([
    ['its message', new Error(`declined: ${CARD}`)],
    ['its code', Object.assign(new Error('declined'), { code: `card_${CARD}` })],
    ['its code, with separators', Object.assign(new Error('declined'), { code: '4242 4242-4242 4242' })],
    ['its code as a number', Object.assign(new Error('declined'), { code: Number(CARD) })],
    ['its name', Object.assign(new Error('declined'), { name: `Refused ${CARD}` })],
    ['its code, past the limit', Object.assign(new Error(), { code: `${'x'.repeat(95)}-${CARD}` })],
    ['its message, past the limit', new Error(`${'x'.repeat(LIMITS.errorMessageLengthMax - 5)} ${CARD}`)],
  ])('keeps no digit of a card number in %s', (_, error) => {
    const { code, message } = failureOf(error)
    expect(code + message).not.toMatch(/42/)
  })

  it('keeps the code, or else the name, and the message', () => {
    expect(failureOf(Object.assign(new Error('no'), { code: 'funds' }))).toEqual({
      code: 'funds',
      message: 'no',
    })
    expect(failureOf(Object.assign(new Error('no'), { code: 7 })).code).toBe('7')
    expect(failureOf(new TypeError('no')).code).toBe('TypeError')
    expect(failureOf(CARD)).toEqual({ code: 'thrown', message: 'A string was thrown.' })
  })

  it('says of our own errors what happened, and not what a client is to do', () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      // What is refused with 4xx is refused before anything is kept of it.
      if (ERRORS[code].status < 500) continue
      const { message } = failureOf(new OnlyonceError(code as PlainCode, { detail: 'More of it.' }))
      expect(message, code).toMatch(/[^ ] More of it\.$/)
      expect(message, code).not.toMatch(/with the same key|a new key|Contact support/)
    }
  })

  it('says nothing of a request: the work that met the error may be a save, or a look', () => {
    for (const code of ['store_unavailable', 'pool_exhausted', 'overloaded', 'closed'] as const) {
      const { message } = failureOf(new OnlyonceError(code))
      expect(message, code).not.toMatch(/request started|one started|nothing was started/)
      const told = withoutRequest(new OnlyonceError(code, { detail: 'Why.', cause: 1 })) as OnlyonceError
      expect(told, code).toMatchObject({ code, message: `${message} Why.`, cause: 1 })
      expect(`${told.stack}`, code).not.toMatch(/with the same key/)
    }
  })

  it('can be stored: bounded, and without NUL', () => {
    const error = Object.assign(new Error(`a\0${'m'.repeat(9_999)}`), { code: `\0${'c'.repeat(9_999)}` })
    const { code, message } = failureOf(error)
    expect(code).toBe('c'.repeat(LIMITS.errorCodeLengthMax))
    expect(message).toBe(`a${'m'.repeat(LIMITS.errorMessageLengthMax - 1)}`)
  })

  it('is told even of what cannot be read', () => {
    const unreadable = [
      Object.assign(new Error('x'), { message: Symbol('no text') }),
      Object.defineProperty(new Error('x'), 'message', { get: () => expect.fail('read') }),
      Object.defineProperty(new Error('x'), 'code', {
        get() {
          throw new Error('no')
        },
      }),
    ]
    for (const error of unreadable) {
      expect(failureOf(error)).toEqual({ code: 'thrown', message: 'What was thrown cannot be read.' })
    }
  })
})
