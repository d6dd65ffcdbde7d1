import { assertType, describe, expectTypeOf, it } from 'vitest'
import type { KeyRules } from '../entries/keys.ts'
import { logFields, logTo, type Observer, type Signal } from '../entries/observe.ts'
import type { Stored } from '../entries/store.ts'
import {
  type IssuedKey,
  type Onlyonce,
  onlyonce,
  operation,
  type Result,
  type RunResult,
  type Stuck,
  unwrap,
} from '../index.ts'
import { assertFence, type Lock, locks } from '../locks/index.ts'
import { operator } from '../operator/index.ts'
import { memory } from '../store/memory/index.ts'
import { type PostgresTx, postgres } from '../store/postgres/index.ts'
import { reaper, startWorkers } from '../workers/index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const call = { account: 'a', operation: 'o', key: 'k' }

describe('the front door', () => {
  it('gives the tx of its store', () => {
    expectTypeOf(once).toEqualTypeOf<Onlyonce<PostgresTx>>()
    once.transaction(call, async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<PostgresTx>()
      const { rows } = await tx.query<{ id: number }>('SELECT 1 AS id')
      expectTypeOf(rows).toEqualTypeOf<{ id: number }[]>()
    })
    // @ts-expect-error a store is needed
    onlyonce({ secret: '' })
    onlyonce({ store: memory() })
    onlyonce({ store: memory(), secret: process.env.ONLYONCE_SECRET })
  })

  it('needs account, operation and key', () => {
    // @ts-expect-error there is no anonymous account
    once.transaction({ operation: 'o', key: 'k' }, async () => 1)
    // @ts-expect-error nor a key without an operation
    once.transaction({ account: 'a', key: 'k' }, async () => 1)
    // @ts-expect-error isolation is one of three
    once.transaction({ ...call, isolation: 'chaos' }, async () => 1)
  })

  it('issues keys at once, for an account and an operation', () => {
    expectTypeOf(once.issueKey({ account: 'a', operation: 'o' })).toEqualTypeOf<IssuedKey>()
    expectTypeOf<IssuedKey>().toEqualTypeOf<{ readonly key: string; readonly expiresAt: number }>()
    expectTypeOf<KeyRules['issued']>().toEqualTypeOf<'accepted' | 'required' | undefined>()
    // @ts-expect-error a key is issued to somebody
    once.issueKey({ operation: 'o' })
    // @ts-expect-error for something
    once.issueKey({ account: 'a' })
    // @ts-expect-error it expires after a time, not at one
    once.issueKey({ account: 'a', operation: 'o', expiresInMs: new Date() })
    // @ts-expect-error issued keys are accepted or required
    onlyonce({ store: memory(), secret: '', keys: { issued: 'never' } })
  })

  it('tells what a value is after it was stored', () => {
    expectTypeOf<Stored<Date>>().toEqualTypeOf<string>()
    expectTypeOf<Stored<{ at: Date; n: number; list: Date[] }>>().toEqualTypeOf<{
      at: string
      n: number
      list: string[]
    }>()
    expectTypeOf<Stored<bigint>>().toEqualTypeOf<never>()
    expectTypeOf<Stored<undefined>>().toEqualTypeOf<undefined>()
    expectTypeOf<Stored<Map<string, number>>>().toEqualTypeOf<never>()
    expectTypeOf<Stored<Uint8Array>>().toEqualTypeOf<never>()
    expectTypeOf<Stored<RegExp>>().toEqualTypeOf<never>()
    const result = once.transaction(call, async () => ({ at: new Date(), run: () => 1 }))
    expectTypeOf(result).resolves.toEqualTypeOf<Result<{ at: string }>>()
  })

  it('takes one observer or several, and no other thing', () => {
    const observer: Observer = { signal: (signal) => void signal.signal }
    onlyonce({ store: memory(), secret: '', observe: observer })
    onlyonce({ store: memory(), secret: '', observe: [observer, logTo(console)] })
    // @ts-expect-error a function is no observer
    onlyonce({ store: memory(), secret: '', observe: () => {} })
    expectTypeOf(once.stuck()).resolves.toEqualTypeOf<Stuck>()
    expectTypeOf(logFields).parameter(0).toEqualTypeOf<Signal>()
  })

  it('has a result that a switch exhausts', () => {
    const describeResult = (result: Result<number>): string => {
      switch (result.outcome) {
        case 'executed':
        case 'replayed':
          return `${result.value}`
        case 'in_progress':
          return `${result.retryAfterMs}`
        case 'key_reused':
          return 'another request'
        case 'unknown':
        case 'parked':
          return result.why
        default:
          return result satisfies never
      }
    }
    assertType<(result: Result<number>) => string>(describeResult)
    // @ts-expect-error there is no value to read before the outcome is known
    ;(result: Result<number>) => result.value
  })
})

describe('unwrap and keyFrom', () => {
  it('gives the type of the value', () => {
    expectTypeOf(unwrap({} as Result<{ id: string }>)).toEqualTypeOf<{ id: string }>()
    expectTypeOf(unwrap({} as RunResult<number>)).toEqualTypeOf<number>()
  })

  it('wants a key or what it is made of, and not both', () => {
    const work = async () => 1
    once.execute({ account: 'a', operation: 'o', input: { id: 1 }, keyFrom: ['id'] }, work)
    // @ts-expect-error nothing names the action
    once.execute({ account: 'a', operation: 'o' }, work)
    // @ts-expect-error two names for one action
    once.execute({ account: 'a', operation: 'o', key: 'k', keyFrom: ['id'] }, work)
    const pay = operation('pay', async (_op, input: { orderId: string }) => input.orderId)
    once.run(pay, { account: 'a', input: { orderId: 'x' }, keyFrom: ['orderId'] })
    // @ts-expect-error the input has no such member
    once.run(pay, { account: 'a', input: { orderId: 'x' }, keyFrom: ['orderid'] })
  })
})

describe('what works beside the calls', () => {
  it('runs workers', () => {
    const workers = startWorkers(once, { workers: [reaper(once, { mode: 'expire' })] })
    expectTypeOf(workers.stop).returns.resolves.toEqualTypeOf<void>()
    // @ts-expect-error whether records are deleted is nothing to guess
    reaper(once, {})
  })

  it('locks nothing for ever', async () => {
    const lock = await locks(once).acquire('r', { account: 'a', ttlMs: 1 })
    expectTypeOf(lock).toEqualTypeOf<Lock>()
    once.transaction(call, (tx) => assertFence(tx, lock))
    // @ts-expect-error there is no lock without an end
    locks(once).acquire('r', { account: 'a' })
  })

  it('takes a decision with one outcome, by somebody and for a reason', () => {
    const desk = operator(once)
    const signed = { by: 'ann', why: 'ticket 1' }
    desk.resolve(call, { ...signed, allowRetry: true })
    desk.resolve(call, { ...signed, reply: { status: 200, body: '{}' } })
    // @ts-expect-error one of the two
    desk.resolve(call, { ...signed, allowRetry: true, reply: { status: 200 } })
    // @ts-expect-error nobody decides without a reason
    desk.park(call, { by: 'ann' })
  })
})
