import { describe, expect, it } from 'vitest'
import { finalRules } from './final.ts'

const refuse = (detail: string): never => {
  throw new Error(detail)
}
const STATUSES = [200, 204, 301, 400, 401, 402, 403, 404, 408, 409, 410, 422, 425, 429, 500, 503]
const retried = (rules: (status: number) => string) => STATUSES.filter((status) => rules(status) === 'retry')

describe('which replies let a request run again', () => {
  it('of a handler: none', () => expect(retried(finalRules({}, 'handler', refuse))).toEqual([]))

  it('of a handler that may run twice: failures', () =>
    expect(retried(finalRules({}, 'rerunnable', refuse))).toEqual([500, 503]))

  it('of a transaction: failures and "not now"', () =>
    expect(retried(finalRules({}, 'transaction', refuse))).toEqual([
      400, 401, 403, 404, 408, 409, 425, 429, 500, 503,
    ]))

  it('a status goes before its class, and both before the usual', () => {
    const rules = finalRules({ '4xx': 'store', 409: 'retry', '5xx': 'store' }, 'transaction', refuse)
    expect(retried(rules)).toEqual([409])
  })
})
