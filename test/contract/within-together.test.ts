import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Onlyonce } from '../../src/index.ts'
import { assertFence, locks } from '../../src/locks/index.ts'
import { inbox } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { beginCaller, catchError, leaveEffect, makeCall, makeGate, openShop, type Shop } from './shop.ts'

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

describe('calls through different objects over one connection', () => {
  let once: Onlyonce<PostgresTx>
  beforeAll(() => {
    once = shop.open()
  })

  type Handle = { query: pg.PoolClient['query'] }
  const around = (on: Handle) => ({ query: on.query.bind(on) }) as Handle
  type Call = (on: Handle, note: string, work: () => Promise<unknown>) => Promise<unknown>
  const receive: Call = (on, note, work) =>
    inbox(once).once(on, { account: 'acct_1', source: 'objects', messageId: note }, work)
  const within: Call = (on, note, work) =>
    once.within(on, makeCall({ key: note }), async () => void (await work()))

  /** The second call is made while the function of the first one runs, and its own function would fail. */
  async function expectRefused(on: Handle, first: Handle, second: Handle, one: Call, other: Call) {
    const { key } = makeCall()
    const gate = makeGate()
    const running = one(first, `${key}-1`, async () => {
      await leaveEffect(on, key)
      await gate.pass()
    })
    await gate.reached
    const failing = other(second, `${key}-2`, () => Promise.reject(new Error('no')))
    expect(await catchError(failing)).toMatchObject({ code: 'within_busy' })
    gate.open()
    expect(await running).toMatchObject({ outcome: 'executed' })
    return key
  }

  test.each([
    ['two messages', receive, receive],
    ['a message beside within', within, receive],
    ['within beside a message', receive, within],
    ['within beside within', within, within],
  ])('are refused side by side as well: %s', async (_, one, other) => {
    for (const objects of [
      (on: Handle) => [around(on), around(on)],
      (on: Handle) => [on, around(on)],
      (on: Handle) => [around(on), on],
    ]) {
      const client = await beginCaller(shop)
      const [first, second] = objects(client)
      const key = await expectRefused(client, first!, second!, one, other)
      await client.query('COMMIT')
      expect(await shop.countEffects(key)).toBe(1)
    }
  })

  test('are refused in a transaction of the library too', async () => {
    const keys: string[] = []
    await once.transaction(makeCall(), async (tx) => {
      const on = tx as unknown as Handle
      keys.push(await expectRefused(on, on, around(on), receive, receive))
      keys.push(await expectRefused(on, around(on), on, within, receive))
    })
    for (const key of keys) expect(await shop.countEffects(key)).toBe(1)
  })

  test('are refused beside each other inside of within, and taken one in the other', async () => {
    const client = await beginCaller(shop)
    const { key } = makeCall()
    const outer = await once.within(client, makeCall(), async (tx) => {
      await expectRefused(client, tx as Handle, client, receive, receive)
      const inner = await within(around(client), `${key}-inner`, () =>
        receive(around(client), `${key}-deep`, () => leaveEffect(client, key)),
      )
      return inner as { outcome: string }
    })
    expect(outer).toMatchObject({ value: { outcome: 'executed' } })
    await client.query('COMMIT')
    expect(await shop.countEffects(key)).toBe(1)
  })

  test('carry a fence that is asserted through another object than the call', async () => {
    const options = { account: 'acct_1', ttlMs: 60_000, autoExtend: false }
    const lock = await locks(once).acquire(`ledger/${makeCall().key}`, options)
    const { resource } = lock
    await shop.observer.query('UPDATE onlyonce.locks SET held_until = now() WHERE resource = $1', [resource])
    await locks(once).acquire(resource, options)
    const client = await beginCaller(shop)
    await leaveEffect(client, resource)
    const failing = receive(client, resource, () => assertFence(around(client), lock))
    expect(await catchError(failing)).toMatchObject({ code: 'fence_stale' })
    expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
    expect(await shop.countEffects(resource)).toBe(0)
  })
})
