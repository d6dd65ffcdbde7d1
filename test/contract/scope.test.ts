import { beforeAll, describe, expect, test } from 'vitest'
import { catchError, leaveEffect, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

describe.each(POOLERS)('the content of a request, with pooler %s', (pooler) => {
  test('a completed key with another input is key_reused and runs nothing', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall({ input: { amount: 5 } })
    await once.transaction(call, (tx) => leaveEffect(tx, call.key))
    for (const input of [
      { amount: 6 },
      { amount: '5' },
      {},
      null,
      undefined,
      [5],
      { amount: 5, to: 'bob' },
    ]) {
      const result = await once.transaction({ ...call, input }, (tx) => leaveEffect(tx, call.key))
      expect(result).toEqual({ outcome: 'key_reused' })
    }
    expect(await shop.countEffects(call.key)).toBe(1)
    expect((await once.transaction(call, async () => {})).outcome).toBe('replayed')
  })

  test('a retryable key with another input is key_reused, and runs again with its own', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    await catchError(
      once.transaction(call, async () => {
        throw new Error('no')
      }),
    )
    const other = await once.transaction({ ...call, input: { amount: 6 } }, (tx) => leaveEffect(tx, call.key))
    expect(other).toEqual({ outcome: 'key_reused' })
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('nested objects with another order of members are the same request', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall({ input: { a: { x: 1, y: [{ p: 1, q: 2 }] }, b: 2 } })
    await once.transaction(call, async () => 1)
    const input = { b: 2, a: { y: [{ q: 2, p: 1 }], x: 1 } }
    expect((await once.transaction({ ...call, input }, async () => 2)).outcome).toBe('replayed')
  })

  test('the order of elements is part of the request', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall({ input: [1, 2] })
    await once.transaction(call, async () => 1)
    expect((await once.transaction({ ...call, input: [2, 1] }, async () => 2)).outcome).toBe('key_reused')
  })

  test('the same input under another key is another action', async () => {
    const once = shop.open({ store: { pooler } })
    const note = makeCall().key
    for (let payment = 0; payment < 2; payment++) {
      expect((await once.transaction(makeCall(), (tx) => leaveEffect(tx, note))).outcome).toBe('executed')
    }
    expect(await shop.countEffects(note)).toBe(2)
  })
})

describe.each(POOLERS)('scopes, with pooler %s', (pooler) => {
  test.each([
    ['another account', { account: 'acct_2' }],
    ['another operation', { operation: 'refunds.create' }],
    ['an account that differs in case', { account: 'ACCT_1' }],
    ['an account that only looks the same', { account: 'acct_1 ' }],
  ])('the same key for %s is independent', async (_, changes) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const other = { ...call, ...changes, input: { amount: 9 } }
    expect(await once.transaction(call, async () => 'one')).toEqual({ outcome: 'executed', value: 'one' })
    expect((await once.explain(other)).state).toBe('none')
    expect(await once.transaction(other, async () => 'two')).toEqual({ outcome: 'executed', value: 'two' })
    expect(await once.transaction(call, async () => 'x')).toEqual({ outcome: 'replayed', value: 'one' })
    expect(await once.transaction(other, async () => 'x')).toEqual({ outcome: 'replayed', value: 'two' })
  })

  test('names that run into each other when joined are independent', async () => {
    const once = shop.open({ store: { pooler } })
    const key = makeCall().key
    const one = makeCall({ account: 'a', operation: 'b.c', key })
    const two = makeCall({ account: 'a.b', operation: 'c', key })
    await once.transaction(one, async () => 'one')
    expect(await once.transaction(two, async () => 'two')).toEqual({ outcome: 'executed', value: 'two' })
  })

  test('accounts that are written in different Unicode forms are independent', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall({ account: 'caf\u00e9' })
    await once.transaction(call, async () => 'one')
    const other = { ...call, account: 'cafe\u0301' }
    expect(await once.transaction(other, async () => 'two')).toEqual({ outcome: 'executed', value: 'two' })
  })

  test('a version of an operation shares the scope and the request', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const newer = { ...call, operation: `${call.operation}@2` }
    await once.transaction(call, async () => 'one')
    expect(await once.transaction(newer, async () => 'two')).toEqual({ outcome: 'replayed', value: 'one' })
    expect(await once.transaction({ ...newer, input: 0 }, async () => 'two')).toEqual({
      outcome: 'key_reused',
    })
    expect((await once.explain(newer)).state).toBe('completed')
  })
})
