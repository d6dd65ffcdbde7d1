import { beforeAll, describe, expect, test } from 'vitest'
import {
  beginOutside,
  leaveEffect,
  makeCall,
  makeGate,
  openShop,
  POOLERS,
  type Shop,
  settleWithin,
} from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** Somebody else whose transaction with this key has done everything but commit. */
async function holdKey(call: ReturnType<typeof makeCall>) {
  const client = await beginOutside(shop)
  const result = await shop.open().within(client, call, async () => {
    await leaveEffect(client, call.key)
    return 'the winner'
  })
  expect(result).toEqual({ outcome: 'executed', value: 'the winner' })
  return client
}

describe.each(POOLERS)('a duplicate of an open transaction, with pooler %s', (pooler) => {
  test('waits, and replays what the winner commits late', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 20_000 } })
    const call = makeCall()
    const winner = await holdKey(call)
    const duplicate = once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      return 'the duplicate'
    })
    await shop.waitForWaiters(1)
    await winner.query('COMMIT')
    expect(await duplicate).toEqual({ outcome: 'replayed', value: 'the winner' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('waits, and executes when the winner rolls back', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 20_000 } })
    const call = makeCall()
    const winner = await holdKey(call)
    const duplicate = once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      return 'the duplicate'
    })
    await shop.waitForWaiters(1)
    await winner.query('ROLLBACK')
    expect(await duplicate).toEqual({ outcome: 'executed', value: 'the duplicate' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('with another input it waits, and is told key_reused', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 20_000 } })
    const call = makeCall()
    const winner = await holdKey(call)
    const duplicate = once.transaction({ ...call, input: 'other' }, (tx) => leaveEffect(tx, call.key))
    await shop.waitForWaiters(1)
    await winner.query('COMMIT')
    expect(await duplicate).toEqual({ outcome: 'key_reused' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('is told in_progress after lockWaitMaxMs, and replays later', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 200 } })
    const call = makeCall()
    const winner = await holdKey(call)
    const startedAt = performance.now()
    const duplicate = await once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
    })
    expect(duplicate).toEqual({ outcome: 'in_progress', retryAfterMs: expect.any(Number) })
    expect('retryAfterMs' in duplicate && duplicate.retryAfterMs).toBeGreaterThan(0)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    await winner.query('COMMIT')
    expect(await once.transaction(call, async () => '')).toEqual({ outcome: 'replayed', value: 'the winner' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test.each([
    ['as the driver made it', (error: unknown) => error],
    ['wrapped by a data layer', (error: unknown) => new Error('Could not save.', { cause: error })],
  ])(
    'is told in_progress when the winner holds a row of the user too long; error %s',
    async (_, translate) => {
      const [one, two] = [
        shop.open({ store: { pooler } }),
        shop.open({ store: { pooler, lockWaitMaxMs: 200 } }),
      ]
      const call = makeCall()
      const gate = makeGate()
      const spend = "UPDATE balances SET amount = amount - 1 WHERE name = 'alice'"
      const winner = one.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        await tx.query(spend)
        await gate.pass()
        return 'the winner'
      })
      await gate.reached
      const duplicate = await two
        .transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          await tx.query(spend).catch((error: unknown) => {
            throw translate(error)
          })
        })
        .finally(gate.open)
      expect(duplicate).toEqual({ outcome: 'in_progress', retryAfterMs: expect.any(Number) })
      expect((await winner).outcome).toBe('executed')
      expect(await two.transaction(call, async () => '')).toEqual({
        outcome: 'replayed',
        value: 'the winner',
      })
      expect(await shop.countEffects(call.key)).toBe(1)
    },
  )

  test('is told in_progress when somebody unknown holds a row of the user too long', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 200 } })
    const call = makeCall()
    const holder = await beginOutside(shop)
    await holder.query("SELECT 1 FROM balances WHERE name = 'bob' FOR UPDATE")
    const blocked = await once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await tx.query("UPDATE balances SET amount = amount - 1 WHERE name = 'bob'")
    })
    expect(blocked).toEqual({ outcome: 'in_progress', retryAfterMs: expect.any(Number) })
    expect(await shop.countEffects(call.key)).toBe(0)
    await holder.query('ROLLBACK')
    expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
  })

  test('bystanders go on in a pool of two connections', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 25_000 }, poolOptions: { max: 2 } })
    const call = makeCall()
    const winner = await holdKey(call)
    let waiting = true
    const duplicates = Array.from({ length: 20 }, () =>
      once
        .transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
        })
        .finally(() => {
          waiting = false
        }),
    )
    await shop.waitForWaiters(1)
    for (let turn = 0; turn < 50; turn++) {
      expect(
        (
          await settleWithin(
            10_000,
            once.transaction(makeCall(), async () => turn),
          )
        ).outcome,
      ).toBe('executed')
    }
    expect(waiting).toBe(true)
    await winner.query('COMMIT')
    for (const { outcome } of await Promise.all(duplicates)) expect(outcome).toBe('replayed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('bystanders go on when there are more duplicates than connections', async () => {
    const once = shop.open({ store: { pooler, lockWaitMaxMs: 25_000 }, poolOptions: { max: 2 } })
    const calls = Array.from({ length: 5 }, () => makeCall())
    const winners = await Promise.all(calls.map(holdKey))
    const duplicates = calls.map((call) => once.transaction(call, (tx) => leaveEffect(tx, call.key)))
    await shop.waitForWaiters(1)
    for (let turn = 0; turn < 20; turn++) {
      expect(
        (
          await settleWithin(
            10_000,
            once.transaction(makeCall(), async () => turn),
          )
        ).outcome,
      ).toBe('executed')
    }
    for (const winner of winners) await winner.query('COMMIT')
    for (const { outcome } of await Promise.all(duplicates)) {
      expect(['replayed', 'in_progress']).toContain(outcome)
    }
    for (const call of calls) {
      expect(await once.transaction(call, async () => '')).toEqual({
        outcome: 'replayed',
        value: 'the winner',
      })
      expect(await shop.countEffects(call.key)).toBe(1)
    }
  })
})
