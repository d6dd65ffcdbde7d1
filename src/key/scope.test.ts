import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { operationName, operationVersion, scopeOf } from './scope.ts'

const bad: [unknown, RegExp][] = [
  [undefined, /not a string/],
  [null, /not a string/],
  [7, /not a string/],
  [{}, /not a string/],
  ['', /empty/],
  ['   ', /only spaces/],
  ['a'.repeat(256), /too long/],
  ['a\0b', /control character/],
  ['a\nb', /control character/],
  ['a\x7f', /control character/],
  ['a\x85', /control character/],
  ['a\ud800', /surrogate/],
  ['\udc00a', /surrogate/],
]

describe('scopeOf', () => {
  it('always holds both', () => {
    expect(scopeOf('acct_1', 'payments.create')).toEqual({ account: 'acct_1', operation: 'payments.create' })
    expect(scopeOf('a'.repeat(255), 'ö😀 x')).toEqual({ account: 'a'.repeat(255), operation: 'ö😀 x' })
  })

  it.each(bad)('refuses the account %j', (account, detail) => {
    expect(() => scopeOf(account, 'op')).toThrow(expect.objectContaining({ code: 'account_invalid' }))
    expect(() => scopeOf(account, 'op')).toThrow(detail)
  })

  it.each(bad)('refuses the operation %j', (operation, detail) => {
    expect(() => scopeOf('acct_1', operation)).toThrow(expect.objectContaining({ code: 'operation_invalid' }))
    expect(() => scopeOf('acct_1', operation)).toThrow(detail)
  })

  it.each([
    ['payments.create@2', 'payments.create', 2],
    ['payments.create@10', 'payments.create', 10],
    ['payments.create', 'payments.create', null],
    ['GET /@me', 'GET /@me', null],
    ['payments@2.create', 'payments@2.create', null],
    ['payments@', 'payments@', null],
  ])('%s is %s in version %s', (name, operation, version) => {
    expect(scopeOf('acct_1', name).operation).toBe(operation)
    expect(operationVersion(name)).toBe(version)
  })

  it.each(['@2', ' @2', 'a@1@2', 'a@1234567890'])('refuses %j', (operation) => {
    expect(() => operationName(operation)).toThrow(expect.objectContaining({ code: 'operation_invalid' }))
  })

  it('strips once and for all', () => {
    const names = fc
      .array(fc.constantFrom('a', '@', '1', '.'), { minLength: 1, maxLength: 8 })
      .map((list) => list.join(''))
    fc.assert(
      fc.property(names, (name) => {
        let once: string
        try {
          once = operationName(name)
        } catch {
          return
        }
        expect(operationName(once)).toBe(once)
      }),
    )
  })
})
