import { beforeAll, describe, expect, test } from 'vitest'
import { beginCaller, catchError, leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

describe('several calls of within on one transaction', () => {
  test('side by side are refused, because savepoints would undo one with the other', async () => {
    const once = shop.open()
    const [one, other] = [makeCall(), makeCall()]
    const client = await beginCaller(shop)
    const [first, second] = await Promise.allSettled([
      once.within(client, one, async (tx) => {
        await leaveEffect(tx, one.key)
        return 'paid'
      }),
      once.within(client, other, () => Promise.reject(new Error('no'))),
    ])
    expect(first).toEqual({ status: 'fulfilled', value: { outcome: 'executed', value: 'paid' } })
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'within_busy' } })
    await client.query('COMMIT')
    expect(await shop.countEffects(one.key)).toBe(1)
    expect((await once.explain(one)).state).toBe('completed')
    expect((await once.explain(other)).state).toBe('none')
  })

  test('one inside the other use the tx that the outer one is given', async () => {
    const once = shop.open()
    const [outer, inner] = [makeCall(), makeCall()]
    const client = await beginCaller(shop)
    const result = await once.within(client, outer, async (tx) => {
      await leaveEffect(tx, outer.key)
      await once.within(tx, inner, () => Promise.reject(new Error('inner'))).catch(() => {})
      return (await once.within(tx, inner, async () => 'inner')).outcome
    })
    expect(result).toEqual({ outcome: 'executed', value: 'executed' })
    await client.query('COMMIT')
    expect(await shop.countEffects(outer.key)).toBe(1)
    expect((await once.explain(inner)).state).toBe('completed')
  })

  test('need a transaction, not a pool', async () => {
    const once = shop.open()
    const call = makeCall()
    const error = await catchError(once.within(shop.database.pool(), call, async () => 1))
    expect(error).toMatchObject({ code: 'transaction_required' })
    expect((await once.explain(call)).state).toBe('none')
  })
})
