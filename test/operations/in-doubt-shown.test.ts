import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { callRefused, operation } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { reconciler } from '../../src/workers/index.ts'
import { openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { LOOKS, lookUntilParked, makeMemory, parkedPayment, rowOf, VOID } from './remembered.ts'
import { payment, payWith } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

describe('what operators are shown of a call in doubt', () => {
  test('its step, its key and since when, which looks at it do not change', async () => {
    const till = makeMemory()
    const pay = payWith(till, { name: 'payments.shown' })
    const call = payment()
    const id = { account: call.account, operation: pay.name, key: call.key }
    const once = shop.open({ reconcileAfterMs: [1, 1], operations: [pay] })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const first = await operator(once).show(id)
    const { waits_for: waitsFor, waits_since: waitsSince } = await rowOf(shop, call.key)
    const inDoubt = { step: 'charged', key: waitsFor, generation: 0, since: first.inDoubt!.since }
    expect(first).toMatchObject({ state: 'unknown', inDoubt })
    // The database rounds to a millisecond, and JavaScript cuts.
    expect(Math.abs(inDoubt.since - waitsSince.getTime())).toBeLessThanOrEqual(1)
    expect(first.why).toMatch(/^Whether the call of step charged took effect is not known, for \d+ s now: /)
    await waitUntil('a worker has looked', async () => {
      await reconciler(once).runOnce()
      return (await rowOf(shop, call.key)).fence > 1
    })
    expect(await operator(once).show(id)).toMatchObject({ inDoubt })
    await lookUntilParked({ once, id })
    const parked = await operator(once).show(id)
    expect(parked).toMatchObject({ state: 'parked', inDoubt })
    expect(parked.why).toMatch(/ about the call of step charged, in doubt for \d+ s: /)
    expect(await once.explain(id)).toMatchObject({ inDoubt })
  })

  test('how find failed, and what stood behind the error of the call', async () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const pay = operation('payments.find_broken', (op) =>
      op.call('charged', {
        idempotent: false,
        call: () => Promise.reject(new TypeError('fetch failed', { cause: refused })),
        find: () => Promise.reject(new TypeError('no client 4242424242424242')),
      }),
    )
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const call = { account: 'acct_1', key: randomUUID(), input: null }
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const { why } = await operator(once).show({ ...call, operation: pay.name })
    for (const text of [why, heard.of('reconcile_scheduled')[0]!.failure.message]) {
      expect(text).toContain('TypeError: fetch failed (ECONNREFUSED: connect ECONNREFUSED)')
      expect(text).toContain(
        'find was asked in vain, once by this owner. The last time: TypeError: no client [card',
      )
    }
  })

  test('its generation, and since when the new call is in doubt', async () => {
    const till = makeMemory()
    const { once, pay, call, id, keyOf } = await parkedPayment(shop, 'payments.generation', till)
    const before = (await operator(once).show(id)).inDoubt!
    await operator(once).resolve(id, VOID)
    expect((await operator(once).show(id)).inDoubt).toBeNull()
    till.failing = true
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const { inDoubt, why } = await operator(once).show(id)
    expect(inDoubt).toMatchObject({ step: 'charged', key: keyOf(1), generation: 1 })
    expect(inDoubt!.since).toBeGreaterThan(before.since)
    expect(why).toContain('the call of step charged, generation 1,')
  })

  test('no step that an earlier version has not kept, and no stale one', async () => {
    const till = makeMemory()
    const { once, call, id, keyOf } = await parkedPayment(shop, 'payments.earlier', till)
    for (const step of [null, 'of another time']) {
      await shop.observer.query('UPDATE onlyonce.records SET waits_step = $2 WHERE key = $1', [
        call.key,
        step,
      ])
      expect((await operator(once).show(id)).inDoubt).toMatchObject({
        step: null,
        key: keyOf(0),
        generation: null,
      })
    }
  })

  test('until when a call may have been sent, also by an attempt whose last call was refused', async () => {
    const answers = [new Error('no answer'), callRefused(new Error('not understood'))]
    const lost = new Error('no answer')
    let next: readonly unknown[] = [lost]
    let calls = 0
    const pay = operation('payments.sent_until', (op) =>
      op.call('charged', {
        call: () => Promise.reject(next[Math.min(calls++, next.length - 1)]),
        find: async () => ({ status: 'not_found' }),
      }),
    )
    const call = { account: 'acct_1', key: randomUUID(), input: {} }
    const once = shop.open({ ...LOOKS, operations: [pay] })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const id = { account: call.account, operation: pay.name, key: call.key }
    const told = async () => (await operator(once).show(id)).record!.sentUntil!
    const first = (await rowOf(shop, call.key)).sent_until.getTime()
    expect(Math.abs((await told()) - first)).toBeLessThanOrEqual(1)
    const old = `UPDATE onlyonce.records SET sent_until = sent_until - interval '1 hour' WHERE key = $1`
    await shop.observer.query(old, [call.key])
    expect(first - (await told())).toBeGreaterThan(3_590_000)
    next = answers
    calls = 0
    await waitUntil('a worker has sent it again', async () => {
      await reconciler(once).runOnce()
      return (await rowOf(shop, call.key)).state === 'parked'
    })
    expect(calls).toBe(2)
    expect(await told()).toBeGreaterThan(first - 60_000)
  })

  test('what happened, and not what a client is to do about it', async () => {
    const pay = operation('payments.silent', (op) =>
      op.call('charged', { idempotent: false, timeoutMs: 1, call: () => new Promise(() => {}) }),
    )
    const call = { account: 'acct_1', key: randomUUID(), input: {} }
    const once = shop.open({ ...LOOKS, operations: [pay] })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const id = { account: call.account, operation: pay.name, key: call.key }
    const { why, next, record } = await operator(once).show(id)
    expect(why).toContain('The call was not answered in time.')
    for (const text of [why, next, record!.failure!.message])
      expect(text).not.toMatch(/the same key|a new key/)
  })
})
