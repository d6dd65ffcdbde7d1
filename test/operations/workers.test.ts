import { beforeAll, describe, expect, test } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { addEvidence, completer, reconciler } from '../../src/workers/index.ts'
import { catchError, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { abandonAt, makeTill, payment, payWith, SHORT } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const NOW = { graceMs: 1, leaseMs: 5_000, inProgressMaxMs: 5_000 }

/** Until the workers have found something to do. */
async function workUntil(worker: { runOnce(): Promise<{ done: number }> }): Promise<void> {
  await waitUntil('the worker does something', async () => (await worker.runOnce()).done > 0)
}

const passDeadline = (key: string) =>
  shop.observer.query('UPDATE onlyonce.records SET deadline_at = clock_timestamp() WHERE key = $1', [key])

describe('the completer', () => {
  test.each(['created', 'charged'] as const)(
    'finishes what was abandoned after %s, from its last durable step',
    async (place) => {
      const till = makeTill()
      const pay = payWith(till, { name: `payments.${place}`, between: abandonAt(place) })
      const call = { ...payment(), ...SHORT }
      expect(await catchError(shop.open().run(pay, call))).toMatchObject({ code: 'lease_lost' })
      const once = shop.open({ operations: [pay] })
      await workUntil(completer(once, NOW))
      expect(await once.run(pay, call)).toMatchObject({
        outcome: 'replayed',
        status: 201,
        value: { id: `pay_${call.key}`, charge: 'ch_1' },
      })
      expect(till.charges).toHaveLength(1)
      expect(await shop.countEffects(`${call.key} created`)).toBe(1)
      expect(await shop.countEffects(`${call.key} settled`)).toBe(1)
    },
  )

  test('leaves alone what is younger than the grace period, and what it has no code for', async () => {
    const till = makeTill()
    const pay = payWith(till, { name: 'payments.young', between: abandonAt('created') })
    await catchError(shop.open().run(pay, { ...payment(), ...SHORT }))
    const other = payWith(till, { name: 'payments.young@2' })
    expect(await completer(shop.open({ operations: [pay] }), { graceMs: 600_000 }).runOnce()).toEqual({
      done: 0,
      more: false,
    })
    expect(await completer(shop.open({ operations: [other] }), NOW).runOnce()).toEqual({
      done: 0,
      more: false,
    })
    expect(till.calls).toBe(0)
  })

  test('begins no call after the deadline of the request', async () => {
    const till = makeTill()
    const pay = payWith(till, {
      name: 'payments.late',
      between: abandonAt('created'),
      visibleWithinMs: 600_000,
    })
    const call = { ...payment(), ...SHORT, deadlineMs: 60_000 }
    await catchError(shop.open().run(pay, call))
    await passDeadline(call.key)
    const once = shop.open({ operations: [pay] })
    await workUntil(completer(once, NOW))
    expect(till.calls).toBe(0)
    // It looked, found nothing, and that proves nothing before the settle window is over.
    expect(till.looks).toBe(1)
    expect(await once.run(pay, payment() && call)).toMatchObject({ outcome: 'unknown' })
  })

  test('knows that nothing was sent when the settle window is over', async () => {
    const till = makeTill()
    const pay = payWith(till, { name: 'payments.settled', between: abandonAt('created'), visibleWithinMs: 1 })
    const call = { ...payment(), ...SHORT, deadlineMs: 60_000 }
    await catchError(shop.open().run(pay, call))
    await passDeadline(call.key)
    const once = shop.open({ operations: [pay] })
    await workUntil(completer(once, NOW))
    expect(till.calls).toBe(0)
    expect((await once.explain({ ...call, operation: 'payments.settled' })).state).toBe('retryable')
    const { deadlineMs: _, ...again } = call
    expect(await once.run(pay, { ...again, leaseMs: 5_000, inProgressMaxMs: 5_000 })).toMatchObject({
      outcome: 'executed',
    })
    expect(till.charges).toHaveLength(1)
  })
})

describe('the reconciler', () => {
  const options = { reconcileAfterMs: [1, 1, 1] }

  test('finds a charge that showed late, and never charges again where nobody dedupes', async () => {
    const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'not_found' })
    const pay = payWith(till, { name: 'payments.lagging' })
    const call = payment()
    const once = shop.open(options)
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    await workUntil(reconciler(once))
    till.lookup = 'truth'
    await workUntil(reconciler(once))
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: { charge: 'ch_1' } })
    expect(till).toMatchObject({ calls: 1, charges: [{ id: 'ch_1' }] })
  })

  test.each(['pending', 'away', 'not_found'] as const)(
    'parks what stays in doubt (%s) after the last look, and says so',
    async (lookup) => {
      const heard = makeRecorder()
      const till = makeTill({ idempotent: false, behaviour: 'lose', lookup })
      const pay = payWith(till, { name: `payments.stays.${lookup}` })
      const call = payment()
      const once = shop.open({ ...options, observe: heard })
      expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
      for (const _ of options.reconcileAfterMs) await workUntil(reconciler(once))
      expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
      expect(await reconciler(once).runOnce()).toEqual({ done: 0, more: false })
      expect(till).toMatchObject({ calls: 1, looks: 4 })
      expect(heard.signals.filter(({ signal }) => signal === 'parked')).toHaveLength(1)
      expect(heard.signals.filter(({ signal }) => signal === 'reconcile_failed')).toHaveLength(3)
    },
  )

  test('goes on with what others told, without asking', async () => {
    const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'away' })
    const pay = payWith(till, { name: 'payments.told' })
    const call = payment()
    const once = shop.open({ reconcileAfterMs: [3_600_000] })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const { looks } = till
    const key = derivedKey({ ...call, operation: 'payments.told', step: 'charged' })
    await addEvidence(once, { account: call.account, key, result: { id: 'ch_1', amount: 5 } })
    await addEvidence(once, { account: call.account, key, result: { id: 'ch_2', amount: 5 } })
    expect(await reconciler(once).runOnce()).toMatchObject({ done: 1 })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: { charge: 'ch_1' } })
    expect(till).toMatchObject({ calls: 1, looks })
  })

  test('is not needed where the word came before the answer, which was then lost', async () => {
    const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'away' })
    const call = payment()
    const once = shop.open()
    const told = { ...till, charge: till.charge, find: till.find }
    told.charge = async (amount, key) => {
      await addEvidence(once, { account: call.account, key, result: { id: 'ch_1', amount } })
      return await till.charge(amount, key)
    }
    const pay = payWith(told, { name: 'payments.told_before' })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', value: { charge: 'ch_1' } })
    expect(till).toMatchObject({ calls: 1, looks: 0 })
  })

  test('looks only, when the other side may have forgotten the key', async () => {
    const till = makeTill({ behaviour: 'lose', lookup: 'not_found' })
    const pay = payWith(till, { name: 'payments.forgotten', keyLifetimeMs: 150, timeoutMs: 100 })
    const once = shop.open({ reconcileAfterMs: [200, 1] })
    const call = payment()
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const { calls } = till
    await workUntil(reconciler(once))
    await workUntil(reconciler(once))
    expect(till.calls).toBe(calls)
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
  })

  test('keeps the result of a call whose next step fails for good, and goes on with it later', async () => {
    const till = makeTill()
    let broken = true
    const pay = payWith(till, {
      name: 'payments.unsettled',
      settling: () => {
        if (broken) throw new Error('the ledger is out of balance')
      },
    })
    const call = payment()
    const once = shop.open({ reconcileAfterMs: [1, 1] })
    expect(await catchError(once.run(pay, call))).toMatchObject({ message: 'the ledger is out of balance' })
    const { rows } = await shop.observer.query(
      "SELECT state, recovery_point, convert_from(progress, 'UTF8') AS progress FROM onlyonce.records WHERE key = $1",
      [call.key],
    )
    expect(rows[0]).toMatchObject({ state: 'unknown', recovery_point: 'charged' })
    expect(rows[0].progress).toContain('ch_1')
    broken = false
    await workUntil(reconciler(once))
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: { charge: 'ch_1' } })
    expect(till).toMatchObject({ calls: 1, looks: 0 })
  })
})
