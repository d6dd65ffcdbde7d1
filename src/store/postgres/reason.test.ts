import { expect, it } from 'vitest'
import { OnlyonceError } from '../../core/errors.ts'
import { noAnswer } from './in-time.ts'
import { reasonOf } from './reason.ts'

const coded = (code: string, more: object = {}) =>
  Object.assign(new Error('secret of the driver'), { code, ...more })
const fromServer = (code: string) => coded(code, { severity: 'FATAL' })

it.each([
  [coded('ECONNREFUSED'), 'refused'],
  [new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]), 'refused'],
  [coded('ENOENT', { syscall: 'connect' }), 'refused'],
  [coded('ENOENT', { syscall: 'open' }), 'other'],
  [coded('ENOTFOUND'), 'unreachable'],
  [noAnswer(), 'silent'],
  [new Error('Query read timeout'), 'silent'],
  [
    new Error('Connection terminated due to connection timeout', {
      cause: new Error('Connection terminated'),
    }),
    'silent',
  ],
  [new Error('timeout exceeded when trying to connect'), 'pool_exhausted'],
  [coded('ECONNRESET'), 'reset'],
  [new Error('Connection terminated unexpectedly'), 'reset'],
  [fromServer('25006'), 'read_only'],
  [fromServer('57P03'), '57P03'],
  [coded('DEPTH_ZERO_SELF_SIGNED_CERT'), 'tls'],
  [coded('EWHATEVER'), 'other'],
  [undefined, 'other'],
])('a store that is away because of %s is %s', (cause, reason) => {
  expect(reasonOf(new OnlyonceError('store_unavailable', { cause }))).toBe(reason)
})

it('tells a full pool from a server that lets no connection in', () => {
  expect(reasonOf(new OnlyonceError('pool_exhausted'))).toBe('pool_exhausted')
  expect(reasonOf(new OnlyonceError('pool_exhausted', { cause: noAnswer() }))).toBe('silent')
})

it.each([new OnlyonceError('lease_lost'), fromServer('40001'), null])('is silent about %s', (error) => {
  expect(reasonOf(error)).toBeNull()
})

it('reads no error that cannot be read', () => {
  const { proxy, revoke } = Proxy.revocable(new Error(), {})
  const error = new OnlyonceError('store_unavailable', { cause: proxy })
  revoke()
  expect(reasonOf(error)).toBe('other')
})
