import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/entries/limits.ts'
import { OnlyonceError } from '../../src/index.ts'
import { beginCaller, catchError, leaveEffect, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

function makeCycle(): unknown {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  return cycle
}

const UNSTORABLE: readonly (readonly [name: string, value: unknown])[] = [
  ['a bigint', 5n],
  ['a bigint inside', { amount: 5n }],
  ['NaN', Number.NaN],
  ['Infinity inside', [Number.POSITIVE_INFINITY]],
  ['a function', () => 1],
  ['a function inside', { call: () => 1 }],
  ['a symbol', Symbol('x')],
  ['a cycle', makeCycle()],
  ['a Map', new Map([['a', 1]])],
  ['a Map inside', { map: new Map() }],
  ['a Set', new Set([1])],
  ['an invalid date', new Date(Number.NaN)],
  ['an invalid date inside', { at: [new Date('never')] }],
  ['an error', new Error('declined')],
  ['an error inside', { why: new TypeError('declined') }],
  ['a regular expression', { pattern: /a/ }],
  ['bytes', Buffer.from('a')],
  ['bytes inside', { bytes: new Uint8Array(2) }],
  ['numbers of one type', { list: new Float64Array(2) }],
  ['a buffer', new ArrayBuffer(2)],
  ['undefined in a list', ['a', undefined]],
  // biome-ignore lint/suspicious/noSparseArray: this is what is tested.
  ['a list with a hole', { list: [1, , 2] }],
  ['a list with a member of its own', 'abc'.match(/b/)],
  [
    'an object that hides what it knows',
    new (class Hidden {
      #secret = 1
      read() {
        return this.#secret
      }
    })(),
  ],
  ['a toJSON that gives what cannot be stored', { toJSON: () => new Map() }],
  ['a boxed number', { boxed: Object(1) }],
  ['a promise', { later: Promise.resolve(1) }],
]

class Money {
  readonly amount = 5
  readonly currency = 'eur'
  twice() {
    return this.amount * 2
  }
}

/** What JSON converts by its own rules. The first call returns the same as a replay. */
const CONVERTED: readonly (readonly [name: string, value: unknown, stored: unknown])[] = [
  ['a date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
  ['a member that is undefined', { a: 1, b: undefined }, { a: 1 }],
  ['an object of a class', new Money(), { amount: 5, currency: 'eur' }],
  ['an object with toJSON', { toJSON: () => ({ id: 7 }) }, { id: 7 }],
  ['minus zero', [-0], [0]],
  ['a large number', 2 ** 60, 2 ** 60],
  ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
]

test.each(CONVERTED)('%s is converted, and replayed as it was returned', async (_, value, stored) => {
  const once = shop.open()
  const call = makeCall()
  expect(await once.transaction(call, async () => value)).toEqual({ outcome: 'executed', value: stored })
  expect(await once.transaction(call, async () => 'other')).toEqual({ outcome: 'replayed', value: stored })
})

describe.each(POOLERS)('a value that cannot be stored, with pooler %s', (pooler) => {
  test.each(UNSTORABLE)('%s rolls back everything', async (_, value) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const error = await catchError(
      once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        return value
      }),
    )
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(error.code).toBe('value_not_serializable')
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.explain(call)).state).toBe('retryable')
    const retry = await once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      return 'storable'
    })
    expect(retry).toEqual({ outcome: 'executed', value: 'storable' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('a value that is too large rolls back everything', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const error = await catchError(
      once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        return 'x'.repeat(LIMITS.replySizeMaxBytes)
      }),
    )
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(error.code).toBe('value_too_large')
    expect(await shop.countEffects(call.key)).toBe(0)
  })

  test('the size counts bytes, not characters', async () => {
    const once = shop.open({ store: { pooler } })
    const value = '東'.repeat(LIMITS.replySizeMaxBytes / 2)
    expect((await catchError(once.transaction(makeCall(), async () => value))).code).toBe('value_too_large')
  })

  test('a value just within the limit is stored and replayed', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const value = 'x'.repeat(LIMITS.replySizeMaxBytes - 1_024)
    expect(await once.transaction(call, async () => value)).toEqual({ outcome: 'executed', value })
    expect(await once.transaction(call, async () => '')).toEqual({ outcome: 'replayed', value })
  })

  test('inside the transaction of a caller it is refused and the caller may go on', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await beginCaller(shop)
    await leaveEffect(client, call.key)
    const error = await catchError(once.within(client, call, async () => new Map()))
    expect(error.code).toBe('value_not_serializable')
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(1)
    expect((await once.transaction(call, async () => 1)).outcome).toBe('executed')
  })
})
