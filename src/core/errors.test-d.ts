import { expectTypeOf, it } from 'vitest'
import {
  type ErrorCode,
  notExecuted,
  OnlyonceError,
  type PlainCode,
  type Proof,
  type ProvedCode,
} from './errors.ts'

it('the codes that say that nothing was executed are known to the compiler', () => {
  expectTypeOf<ProvedCode>().toEqualTypeOf<'not_executed'>()
  expectTypeOf<PlainCode>().toEqualTypeOf<Exclude<ErrorCode, 'not_executed'>>()
})

it('nobody says that nothing was executed without a proof', () => {
  // @ts-expect-error: no proof at all
  new OnlyonceError('not_executed')
  // @ts-expect-error: other options are none
  new OnlyonceError('not_executed', { cause: new Error('gone') })
  // @ts-expect-error: an object that was made by hand is none
  new OnlyonceError('not_executed', { proof: {} })
  // @ts-expect-error: neither is one that looks like it
  new OnlyonceError('not_executed', { proof: { proved: true } })
  // @ts-expect-error: a code that may be any must not be that one
  new OnlyonceError('closed' as ErrorCode)
  // @ts-expect-error: what an error says is not for its users to change
  notExecuted().executed = 'no'
})

it('all other codes need none, and with one it can be said', () => {
  new OnlyonceError('closed')
  new OnlyonceError('closed' as PlainCode, { detail: 'x' })
  const proof = null as unknown as Proof
  new OnlyonceError('not_executed', { proof })
  expectTypeOf(notExecuted()).toEqualTypeOf<OnlyonceError>()
})
