import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { beginCaller, catchError, leaveEffect, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

function workOn(client: pg.PoolClient, note: string, value: unknown = 'done') {
  return async () => {
    await leaveEffect(client, note)
    return value
  }
}

describe.each(POOLERS)('within a transaction of the caller, with pooler %s', (pooler) => {
  test('it is true once the caller has committed', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await beginCaller(shop)
    const result = await once.within(client, call, workOn(client, call.key, { at: new Date(0) }))
    const value = { at: '1970-01-01T00:00:00.000Z' }
    expect(result).toStrictEqual({ outcome: 'executed', value })
    // Nobody else sees anything of it yet.
    expect((await once.explain(call)).state).toBe('none')
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect((await once.explain(call)).state).toBe('completed')
    expect(await shop.countEffects(call.key)).toBe(1)
    expect(await once.transaction(call, async () => '')).toStrictEqual({ outcome: 'replayed', value })
  })

  test('it is undone when the caller rolls back', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await beginCaller(shop)
    await once.within(client, call, workOn(client, call.key))
    await client.query('ROLLBACK')
    expect((await once.explain(call)).state).toBe('none')
    expect(await shop.countEffects(call.key)).toBe(0)
    await client.query('BEGIN')
    expect((await once.within(client, call, workOn(client, call.key))).outcome).toBe('executed')
    await client.query('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('it is undone when the caller rolls back to a savepoint', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await beginCaller(shop)
    await client.query('SAVEPOINT here')
    await once.within(client, call, workOn(client, call.key))
    await client.query('ROLLBACK TO SAVEPOINT here')
    expect((await once.within(client, call, workOn(client, call.key))).outcome).toBe('executed')
    await client.query('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('a completed key replays, and another input is key_reused', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    await once.transaction(call, async () => 'done')
    const client = await beginCaller(shop)
    expect(await once.within(client, call, workOn(client, call.key))).toEqual({
      outcome: 'replayed',
      value: 'done',
    })
    const other = { ...call, input: 'other' }
    expect(await once.within(client, other, workOn(client, call.key))).toEqual({ outcome: 'key_reused' })
    await leaveEffect(client, 'after')
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(0)
  })

  test('a retryable key runs, and with another input it is key_reused', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const failing = once.transaction(call, async () => {
      throw new Error('no')
    })
    await catchError(failing)
    const client = await beginCaller(shop)
    const other = { ...call, input: 'other' }
    expect(await once.within(client, other, workOn(client, call.key))).toEqual({ outcome: 'key_reused' })
    expect((await once.within(client, call, workOn(client, call.key))).outcome).toBe('executed')
    await client.query('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(1)
    const { state, attempts } = await once.explain(call)
    expect(state).toBe('completed')
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['retryable', 'completed'])
  })

  test('a retryable key stays retryable when the caller rolls back', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const failing = once.transaction(call, async () => {
      throw new Error('no')
    })
    await catchError(failing)
    const client = await beginCaller(shop)
    await once.within(client, call, workOn(client, call.key))
    await client.query('ROLLBACK')
    expect((await once.explain(call)).state).toBe('retryable')
    expect((await once.transaction(call, async () => 1)).outcome).toBe('executed')
  })

  test('two keys in one transaction', async () => {
    const once = shop.open({ store: { pooler } })
    const [one, two] = [makeCall(), makeCall()]
    const client = await beginCaller(shop)
    expect((await once.within(client, one, workOn(client, one.key, 1))).outcome).toBe('executed')
    expect((await once.within(client, two, workOn(client, two.key, 2))).outcome).toBe('executed')
    await client.query('COMMIT')
    expect(await once.transaction(one, async () => 0)).toEqual({ outcome: 'replayed', value: 1 })
    expect(await once.transaction(two, async () => 0)).toEqual({ outcome: 'replayed', value: 2 })
  })

  test('one key twice in one transaction is a replay', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await beginCaller(shop)
    await once.within(client, call, workOn(client, call.key, 1))
    expect(await once.within(client, call, workOn(client, call.key, 2))).toEqual({
      outcome: 'replayed',
      value: 1,
    })
    const other = { ...call, input: 'other' }
    expect(await once.within(client, other, workOn(client, call.key))).toEqual({ outcome: 'key_reused' })
    await client.query('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('it joins a protected transaction as well', async () => {
    const once = shop.open({ store: { pooler }, poolOptions: { max: 1 } })
    const [outer, inner] = [makeCall(), makeCall({ operation: 'fees.create' })]
    const work = () =>
      once.transaction(outer, async (tx) => {
        await leaveEffect(tx, outer.key)
        const fee = await once.within(tx, inner, async () => {
          await leaveEffect(tx, inner.key)
          return 1
        })
        return fee.outcome
      })
    expect(await work()).toEqual({ outcome: 'executed', value: 'executed' })
    expect(await work()).toEqual({ outcome: 'replayed', value: 'executed' })
    expect(await once.transaction(inner, async () => 2)).toEqual({ outcome: 'replayed', value: 1 })
    expect(await shop.countEffects(outer.key)).toBe(1)
    expect(await shop.countEffects(inner.key)).toBe(1)
  })

  test('it is undone with the protected transaction that it joined', async () => {
    const once = shop.open({ store: { pooler } })
    const [outer, inner] = [makeCall(), makeCall()]
    const failing = once.transaction(outer, async (tx) => {
      await once.within(tx, inner, () => leaveEffect(tx, inner.key))
      throw new Error('no')
    })
    await catchError(failing)
    expect((await once.explain(inner)).state).toBe('none')
    expect(await shop.countEffects(inner.key)).toBe(0)
  })
})
