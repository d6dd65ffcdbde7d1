import { expect, test } from 'vitest'
import { OnlyonceError, type Result, unwrap } from '../index.ts'

type Failed = Exclude<Result<never>, { readonly value: unknown }>

test.each(['executed', 'replayed'] as const)('the value of what was %s', (outcome) => {
  expect(unwrap({ outcome, value: { id: 'tr_1' } })).toEqual({ id: 'tr_1' })
  expect(unwrap({ outcome, value: undefined })).toBe(undefined)
  expect(unwrap({ outcome, value: 402, status: 402 })).toBe(402)
})

const FAILED: readonly [Failed, object][] = [
  [
    { outcome: 'in_progress', retryAfterMs: 250 },
    { code: 'in_progress', retryable: true, retryAfterMs: 250, executed: 'unknown' },
  ],
  [
    { outcome: 'unknown', why: 'The gateway fell silent.', retryAfterMs: 9_000 },
    {
      code: 'outcome_pending',
      retryable: true,
      retryAfterMs: 9_000,
      executed: 'unknown',
      message: expect.stringContaining('The gateway fell silent.'),
    },
  ],
  [
    { outcome: 'parked', why: 'Its owners crashed.' },
    {
      code: 'parked',
      retryable: false,
      retryAfterMs: null,
      message: expect.stringContaining('Its owners crashed.'),
    },
  ],
  [{ outcome: 'key_reused' }, { code: 'key_reused', retryable: false, retryAfterMs: null }],
]

test.each(FAILED)('no value of %o, but an error that says what to do', (result, error) => {
  const thrown = (() => {
    try {
      return unwrap(result)
    } catch (error) {
      return error
    }
  })()
  expect(thrown).toBeInstanceOf(OnlyonceError)
  expect(thrown).toMatchObject(error)
})

test('a promise is not taken for a result', () => {
  const promise = Promise.resolve({ outcome: 'executed', value: 1 })
  expect(() => unwrap(promise as never)).toThrow(/Await it first/)
})
