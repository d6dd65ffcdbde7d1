import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { reconciler, startWorkers } from '../../src/workers/index.ts'
import { openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { makeTill, payment, payWith } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const stateOf = async (key: string) => {
  const { rows } = await shop.observer.query(
    `SELECT state, looks, extract(epoch FROM look_at - changed_at) * 1000 AS look_in_ms
     FROM onlyonce.records WHERE key = $1`,
    [key],
  )
  return { ...rows[0], lookInMs: rows[0].look_in_ms === null ? null : Math.round(rows[0].look_in_ms) }
}

const lookNow = (key: string) =>
  shop.observer.query('UPDATE onlyonce.records SET look_at = clock_timestamp() WHERE key = $1', [key])

test('a processor that fails for two seconds and a half does not keep its key busy for a minute', async () => {
  const till = makeTill({ behaviour: 'refuse' })
  const pay = payWith(till, { name: 'payments.hiccup' })
  const once = shop.open()
  const workers = startWorkers(once, { operations: [pay], completer: false, reaper: false })
  const call = payment()
  const began = performance.now()
  setTimeout(() => {
    till.behaviour = 'answer'
  }, 2_500)
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  await waitUntil('the payment is made', async () => (await stateOf(call.key)).state === 'completed', 40_000)
  await workers.stop()
  // The looks come two and seven seconds after the doubt; a minute is what it took when the first came after one.
  expect(performance.now() - began).toBeLessThan(40_000)
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: { charge: 'ch_1' } })
  expect(till.charges).toHaveLength(1)
})

describe('the looks at a doubt', () => {
  test('come when the schedule says, by the clock of the database, and then it is parked', async () => {
    const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'away' })
    const pay = payWith(till, { name: 'payments.by_schedule' })
    const once = shop.open()
    const call = payment()
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    for (const [looks, inMs] of LIMITS.reconcileAfterMs.entries()) {
      const doubt = await stateOf(call.key)
      expect(doubt).toMatchObject({ state: 'unknown', looks })
      expect(Math.abs(doubt.look_in_ms - inMs)).toBeLessThanOrEqual(1)
      // Nobody looks before.
      expect(await reconciler(once).runOnce()).toMatchObject({ done: 0 })
      await lookNow(call.key)
      expect(await reconciler(once).runOnce()).toMatchObject({ done: 1 })
    }
    expect(await stateOf(call.key)).toMatchObject({ state: 'parked', look_in_ms: null })
    expect(till.calls).toBe(1)
  })

  test('that come early take "not found" for no proof until the settle window is over', async () => {
    const till = makeTill({ behaviour: 'lose', lookup: 'not_found' })
    const pay = payWith(till, { name: 'payments.early_looks', visibleWithinMs: 600_000 })
    const once = shop.open()
    const call = { ...payment(), deadlineMs: 60_000 }
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    await shop.observer.query('UPDATE onlyonce.records SET deadline_at = clock_timestamp() WHERE key = $1', [
      call.key,
    ])
    const { calls } = till
    const sentUntil = async () => {
      const text = 'SELECT sent_until::text FROM onlyonce.records WHERE key = $1'
      return (await shop.observer.query(text, [call.key])).rows[0].sent_until
    }
    const before = await sentUntil()
    const early = LIMITS.reconcileAfterMs.filter((inMs) => inMs < 600_000)
    for (const _ of early) {
      await lookNow(call.key)
      expect(await reconciler(once).runOnce()).toMatchObject({ done: 1 })
      expect(await stateOf(call.key)).toMatchObject({ state: 'unknown' })
    }
    expect(till.calls).toBe(calls)
    expect(await sentUntil()).toBe(before)
    // By the looks that are left the window is over, counted from the last call and not from the last look.
    await shop.observer.query(
      `UPDATE onlyonce.records SET sent_until = sent_until - interval '10 minutes', look_at = clock_timestamp()
       WHERE key = $1`,
      [call.key],
    )
    expect(await reconciler(once).runOnce()).toMatchObject({ done: 1 })
    expect(await stateOf(call.key)).toMatchObject({ state: 'retryable' })
  })
})
