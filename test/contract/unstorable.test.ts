import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS, OnlyonceError } from '../../src/index.ts'
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
]

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
        return 'x'.repeat(LIMITS.reply_size_max_bytes)
      }),
    )
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(error.code).toBe('value_too_large')
    expect(await shop.countEffects(call.key)).toBe(0)
  })

  test('the size counts bytes, not characters', async () => {
    const once = shop.open({ store: { pooler } })
    const value = '東'.repeat(LIMITS.reply_size_max_bytes / 2)
    expect((await catchError(once.transaction(makeCall(), async () => value))).code).toBe('value_too_large')
  })

  test('a value just within the limit is stored and replayed', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const value = 'x'.repeat(LIMITS.reply_size_max_bytes - 1_024)
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
