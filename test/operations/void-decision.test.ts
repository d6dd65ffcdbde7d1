import { beforeAll, describe, expect, test } from 'vitest'
import { operator } from '../../src/operator/index.ts'
import { catchError, leaveEffect, makeCall, openShop, type Shop } from '../contract/shop.ts'
import { LOOKS, makeMemory, parkedPayment, rowOf, SIGNED, VOID } from './remembered.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

describe('the decision', () => {
  test('is refused where no call is in doubt', async () => {
    const once = shop.open(LOOKS)
    const call = makeCall()
    await catchError(once.transaction(call, (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')))
    expect(await catchError(operator(once).resolve(call, VOID))).toMatchObject({ code: 'not_resolvable' })
  })

  test.each([
    [{ ...SIGNED, earlierCallIsVoid: true }],
    [{ ...SIGNED, allowRetry: true, earlierCallIsVoid: false }],
    [{ ...SIGNED, reply: { status: 200 }, earlierCallIsVoid: true }],
  ])('is refused as %j', async (resolution) => {
    const given = resolution as never
    expect(await catchError(operator(shop.open()).resolve(makeCall(), given))).toMatchObject({
      code: 'option_invalid',
    })
  })

  test('of two at once is taken once', async () => {
    const till = makeMemory()
    const { once, pay, call, id, keyOf } = await parkedPayment(shop, 'payments.two_desks', till)
    const ends = await Promise.allSettled([
      operator(once).resolve(id, VOID),
      operator(shop.open(LOOKS)).resolve(id, VOID),
    ])
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await rowOf(shop, call.key)).toMatchObject({ void_calls: [keyOf(0)] })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed' })
    expect(till.charges).toEqual([{ key: keyOf(1), id: 'ch_1' }])
  })

  test('falls with the transaction that it joined', async () => {
    const till = makeMemory()
    const { once, call, id, keyOf } = await parkedPayment(shop, 'payments.void_within', till)
    const client = await shop.database.direct({ max: 1 }).connect()
    await client.query('BEGIN')
    await leaveEffect(client, call.key)
    await operator(once).resolve(id, { ...VOID, tx: client })
    await client.query('ROLLBACK')
    expect(await rowOf(shop, call.key)).toMatchObject({
      state: 'parked',
      void_calls: null,
      waits_for: keyOf(0),
    })
    await client.query('BEGIN')
    await operator(once).resolve(id, { ...VOID, tx: client })
    await client.query('COMMIT')
    client.release()
    expect(await rowOf(shop, call.key)).toMatchObject({ state: 'retryable', void_calls: [keyOf(0)] })
  })

  test('has a bound', async () => {
    const till = makeMemory()
    const { once, call, id } = await parkedPayment(shop, 'payments.void_bound', till)
    await shop.observer.query(
      `UPDATE onlyonce.records SET void_calls = array(SELECT 'k' || n FROM generate_series(1, 16) AS n) WHERE key = $1`,
      [call.key],
    )
    expect(await catchError(operator(once).resolve(id, VOID))).toMatchObject({ code: 'not_resolvable' })
  })
})
