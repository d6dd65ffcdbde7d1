import { beforeAll, describe, expect, test } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { addEvidence, reaper, reconciler } from '../../src/workers/index.ts'
import { openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { LOOKS, lookUntilParked, makeMemory, parkedPayment, rowOf, SIGNED, tell, VOID } from './remembered.ts'
import { makeTill, payment, payWith, type Till } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

describe('a call that was declared void and happened', () => {
  test('counts, where it is found before the new call: none is made', async () => {
    const till = makeMemory()
    const stuck = await parkedPayment(shop, 'payments.found_before', till)
    await operator(stuck.once).resolve(stuck.id, VOID)
    ;(till.charges as Till['charges']).push({ key: stuck.keyOf(0), id: 'ch_old' })
    const { length } = till.asked
    expect(await stuck.once.run(stuck.pay, stuck.call)).toMatchObject({
      outcome: 'executed',
      value: { charge: 'ch_old' },
    })
    expect(till.asked).toHaveLength(length)
  })

  test('counts, where a webhook tells it before the new call, and raises the alarm', async () => {
    const heard = makeRecorder()
    const till = makeMemory({ lookup: 'not_found' })
    const stuck = await parkedPayment(shop, 'payments.told_before', till, { observe: heard })
    await operator(stuck.once).resolve(stuck.id, VOID)
    await tell(stuck, stuck.keyOf(0))
    expect(heard.of('void_call_happened')).toMatchObject([{ id: stuck.id, callKey: stuck.keyOf(0) }])
    const { length } = till.asked
    expect(await stuck.once.run(stuck.pay, stuck.call)).toMatchObject({ value: { charge: 'ch_old' } })
    expect(till.asked).toHaveLength(length)
  })

  test.each(['by a webhook', 'by the lookup'])(
    'parks the record, where it shows while the new call is made, %s; nothing is lost of either',
    async (way) => {
      const heard = makeRecorder()
      const till = makeMemory()
      const name = `payments.during.${way.replaceAll(' ', '_')}`
      const stuck = await parkedPayment(shop, name, till, { observe: heard })
      const { once, pay, call, id, keyOf } = stuck
      await operator(once).resolve(id, VOID)
      till.during = async () => {
        if (way === 'by a webhook') await tell(stuck, keyOf(0))
        else (till.charges as Till['charges']).push({ key: keyOf(0), id: 'ch_old' })
      }
      expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
      expect(heard.of('parked').at(-1)).toMatchObject({ failure: { code: 'void_call_happened' } })
      const row = await rowOf(shop, call.key)
      expect(row).toMatchObject({
        state: 'parked',
        error_code: 'void_call_happened',
        recovery_point: 'charged',
      })
      expect(row.progress.toString()).toContain('ch_1')
      // A person gives one of the two back, and lets the payment go on with the other.
      await operator(once).unpark(id, SIGNED)
      await waitUntil('it is finished', async () => {
        await reconciler(once).runOnce()
        return (await once.explain(id)).state === 'completed'
      })
      expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: { charge: 'ch_1' } })
    },
  )

  test('parks the record at once, where the outcome of the new call is in doubt', async () => {
    const heard = makeRecorder()
    const till = makeMemory({ lookup: 'not_found' })
    const stuck = await parkedPayment(shop, 'payments.both_in_doubt', till, { observe: heard })
    const { once, pay, call, id, keyOf } = stuck
    await operator(once).resolve(id, VOID)
    till.behaviour = 'lose'
    const slow = shop.open({ reconcileAfterMs: [3_600_000, 3_600_000], operations: [pay], observe: heard })
    expect(await slow.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    await tell(stuck, keyOf(0))
    // Nobody waits for the next look.
    expect(await reconciler(slow).runOnce()).toMatchObject({ done: 1 })
    expect(await rowOf(shop, call.key)).toMatchObject({
      state: 'parked',
      error_code: 'void_call_happened',
      waits_for: keyOf(1),
    })
    // The operator finds that the new one did not happen: the old one counts, and nothing more is sent.
    await operator(once).resolve(id, { ...SIGNED, allowRetry: true })
    const { length } = till.asked
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', value: { charge: 'ch_old' } })
    expect(till.asked).toHaveLength(length)
  })

  test('is looked at at once, where it was told between the last question and the doubt', async () => {
    const till = makeMemory({ lookup: 'not_found' })
    const stuck = await parkedPayment(shop, 'payments.told_between', till)
    const { once, pay, call, id, keyOf } = stuck
    await operator(once).resolve(id, VOID)
    till.behaviour = 'lose'
    const { find } = till
    till.find = async (key) => {
      // The earlier call was asked about before: nobody asks again in this attempt.
      if (key === keyOf(1)) await tell(stuck, keyOf(0))
      return await find(key)
    }
    const slow = shop.open({ reconcileAfterMs: [3_600_000], operations: [pay] })
    expect(await slow.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    expect(await reconciler(slow).runOnce()).toMatchObject({ done: 1 })
    expect(await rowOf(shop, call.key)).toMatchObject({ state: 'parked', error_code: 'void_call_happened' })
  })

  test('does not use up the looks at a later step', async () => {
    const till = makeMemory()
    const call = payment()
    const id = { account: call.account, operation: 'payments.two_calls', key: call.key }
    const pay = operation('payments.two_calls', async (op) => {
      await op.call('charged', {
        call: ({ key }) => till.charge(5, key),
        find: ({ key }) => till.find(key),
      })
      const lost = async () => {
        throw new Error('socket hang up')
      }
      await op.call('captured', { call: lost, idempotent: false })
      return reply(201)
    })
    const once = shop.open({ ...LOOKS, operations: [pay] })
    await once.run(pay, call)
    await lookUntilParked({ once, id })
    till.failing = false
    await operator(once).resolve(id, VOID)
    const slow = shop.open({ reconcileAfterMs: [3_600_000, 3_600_000], operations: [pay] })
    expect(await slow.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const key = derivedKey({ ...id, step: 'charged' })
    await addEvidence(once, { account: call.account, key, result: { id: 'ch_old', amount: 5 } })
    expect(await reconciler(slow).runOnce()).toMatchObject({ done: 1 })
    expect(await reconciler(slow).runOnce()).toMatchObject({ done: 0 })
    expect(await rowOf(shop, call.key)).toMatchObject({ state: 'unknown', looks: 1 })
  })

  test.each(['completed', 'removed'])('raises the alarm when the record is %s', async (when) => {
    const heard = makeRecorder()
    const till = makeMemory()
    const stuck = await parkedPayment(shop, `payments.alarm.${when}`, till, { observe: heard })
    const { once, pay, call, id, keyOf } = stuck
    await operator(once).resolve(id, VOID)
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed' })
    if (when === 'removed') {
      await shop.observer.query(
        `UPDATE onlyonce.records SET expires_at = now() - interval '1 day', changed_at = now() - interval '1 day'
         WHERE key = $1`,
        [call.key],
      )
      await reaper(once, { mode: 'delete' }).runOnce()
      expect(await rowOf(shop, call.key)).toBeUndefined()
    }
    expect(heard.of('void_call_happened')).toEqual([])
    await tell(stuck, keyOf(0))
    await tell(stuck, keyOf(1), 'ch_1')
    expect(heard.of('void_call_happened')).toMatchObject([{ id, callKey: keyOf(0) }])
  })

  test('raises none for a request of a later life, whose first key it is again', async () => {
    const heard = makeRecorder()
    const till = makeMemory()
    const stuck = await parkedPayment(shop, 'payments.later_life', till, { observe: heard })
    const { once, pay, call, id, keyOf } = stuck
    await operator(once).resolve(id, VOID)
    await once.run(pay, call)
    await shop.observer.query(
      `UPDATE onlyonce.records SET expires_at = now() - interval '1 day', changed_at = now() - interval '1 day'
       WHERE key = $1`,
      [call.key],
    )
    await reaper(once, { mode: 'expire' }).runOnce()
    const forgetful = makeTill()
    const again = payWith(forgetful, { name: 'payments.later_life' })
    expect(await shop.open().run(again, call)).toMatchObject({ outcome: 'executed' })
    expect(forgetful.charges).toEqual([{ key: keyOf(0), id: 'ch_1' }])
    await tell(stuck, keyOf(0))
    expect(heard.of('void_call_happened')).toEqual([])
  })
})
