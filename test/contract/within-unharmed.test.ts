import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  beginCaller,
  catchError,
  leaveEffect,
  makeCall,
  openShop,
  POOLERS,
  type Shop,
  settleWithin,
} from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** The caller's transaction goes on as if nothing had been: its settings too, and its work up to COMMIT. */
async function expectUnharmed(client: pg.PoolClient, note: string): Promise<void> {
  expect((await client.query('SHOW lock_timeout')).rows[0].lock_timeout).toBe('7s')
  await leaveEffect(client, note)
  expect((await client.query('COMMIT')).command).toBe('COMMIT')
  expect(await shop.countEffects(note)).toBe(1)
}

async function begin(): Promise<pg.PoolClient> {
  const client = await beginCaller(shop)
  await client.query("SET LOCAL lock_timeout = '7s'")
  return client
}

describe.each(POOLERS)('the transaction of a caller is never aborted, with pooler %s', (pooler) => {
  test('when it executes', async () => {
    const once = shop.open({ store: { pooler } })
    const client = await begin()
    const inside = await once.within(
      client,
      makeCall(),
      async () => (await client.query('SHOW lock_timeout')).rows[0].lock_timeout,
    )
    // The work of the caller waits for its locks as long as the caller said.
    expect(inside).toEqual({ outcome: 'executed', value: '7s' })
    await expectUnharmed(client, makeCall().key)
  })

  test('when the key is completed, or used otherwise', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    await once.transaction(call, async () => 1)
    const client = await begin()
    expect((await once.within(client, call, async () => 2)).outcome).toBe('replayed')
    expect((await once.within(client, { ...call, input: 0 }, async () => 2)).outcome).toBe('key_reused')
    await expectUnharmed(client, makeCall().key)
  })

  test('when another transaction with the key stays open, and the caller has no bound on lock waits', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 200 } })
    const call = makeCall()
    const winner = await beginCaller(shop)
    await once.within(winner, call, async () => 'the winner')
    const client = await beginCaller(shop)
    await client.query('SET LOCAL lock_timeout = 0')
    const result = await settleWithin(
      10_000,
      once.within(client, call, async () => 'twice'),
    )
    expect(result).toMatchObject({ outcome: 'in_progress' })
    expect((await client.query('SHOW lock_timeout')).rows[0].lock_timeout).toBe('0')
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
  })

  test('when another transaction with the key stays open too long', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 200 } })
    const call = makeCall()
    const winner = await beginCaller(shop)
    await once.within(winner, call, async () => 'the winner')
    const client = await begin()
    let runs = 0
    const result = await once.within(client, call, async () => ++runs)
    expect(result).toEqual({ outcome: 'in_progress', retryAfterMs: expect.any(Number) })
    expect('retryAfterMs' in result && result.retryAfterMs).toBeGreaterThan(0)
    expect(runs).toBe(0)
    await expectUnharmed(client, makeCall().key)
    await winner.query('COMMIT')
    expect(await once.transaction(call, async () => 0)).toEqual({ outcome: 'replayed', value: 'the winner' })
  })

  test.each([
    ['COMMIT', { outcome: 'replayed', value: 'the winner' }],
    ['ROLLBACK', { outcome: 'executed', value: 'the duplicate' }],
  ])('when another transaction with the key ends in time, by %s', async (end, expected) => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 20_000 } })
    const call = makeCall()
    const winner = await beginCaller(shop)
    await once.within(winner, call, async () => 'the winner')
    const client = await begin()
    const result = once.within(client, call, async () => 'the duplicate')
    await shop.waitForWaiters(1)
    await winner.query(end)
    expect(await result).toEqual(expected)
    await expectUnharmed(client, makeCall().key)
  })

  test('when the function throws; what it did is undone, and the key is free', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await begin()
    const thrown = new Error('no')
    const failing = once.within(client, call, async () => {
      await leaveEffect(client, call.key)
      throw thrown
    })
    expect(await catchError(failing)).toBe(thrown)
    await expectUnharmed(client, makeCall().key)
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('when a query of the function fails', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await begin()
    const failing = once.within(client, call, () => client.query('SELECT 1 / 0'))
    expect((await catchError(failing)).code).toBe('22012')
    await expectUnharmed(client, makeCall().key)
    expect((await once.transaction(call, async () => 1)).outcome).toBe('executed')
  })

  test('when the function swallows the failure of its query: that is no success', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await begin()
    const failing = once.within(client, call, async () => {
      await leaveEffect(client, call.key)
      await client.query('SELECT 1 / 0').catch(() => {})
      return 'fine'
    })
    await catchError(failing)
    await client.query('ROLLBACK')
    expect((await once.explain(call)).state).toBe('none')
    expect(await shop.countEffects(call.key)).toBe(0)
  })

  test('when it runs beside an earlier throw in the same transaction', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await begin()
    const failing = once.within(client, call, async () => {
      throw new Error('no')
    })
    await catchError(failing)
    expect((await once.within(client, call, async () => 'again')).outcome).toBe('executed')
    await expectUnharmed(client, makeCall().key)
    expect(await once.transaction(call, async () => '')).toEqual({ outcome: 'replayed', value: 'again' })
  })
})

describe.each(['REPEATABLE READ', 'SERIALIZABLE'])('a caller at %s', (isolation) => {
  const beginText = `BEGIN ISOLATION LEVEL ${isolation}`

  test('executes and replays', async () => {
    const once = shop.open()
    const call = makeCall()
    const client = await beginCaller(shop, beginText)
    await once.within(client, call, () => leaveEffect(client, call.key))
    await client.query('COMMIT')
    await client.query(beginText)
    expect((await once.within(client, call, () => leaveEffect(client, call.key))).outcome).toBe('replayed')
    await client.query('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('whose snapshot is older than the winner gets the serialization failure as its own', async () => {
    const once = shop.open()
    const call = makeCall()
    const client = await beginCaller(shop, beginText)
    await client.query('SELECT count(*) FROM effects')
    await once.transaction(call, async () => 'the winner')
    let runs = 0
    const error = await catchError(once.within(client, call, async () => ++runs))
    expect(error.code).toBe('40001')
    expect(runs).toBe(0)
    await client.query('ROLLBACK')
    // As for any serialization failure: the caller runs its transaction again.
    await client.query(beginText)
    expect(await once.within(client, call, async () => ++runs)).toEqual({
      outcome: 'replayed',
      value: 'the winner',
    })
    await client.query('COMMIT')
  })
})

test('a caller without a transaction is not told that its work is protected', async () => {
  // Each statement would commit alone: a crash between them would leave a claim without work.
  const once = shop.open()
  const call = makeCall()
  const client = await shop.database.pool({ max: 1 }).connect()
  const settled = await once
    .within(client, call, async () => {
      await leaveEffect(client, call.key)
      throw new Error('no')
    })
    .catch(() => 'failed')
  client.release()
  expect(settled).toBe('failed')
  expect(await shop.countEffects(call.key)).toBe(0)
  expect((await once.explain(call)).state).not.toBe('completed')
})
