import { beforeAll, describe, expect, test } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { type Found, operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { addEvidence, reconciler } from '../../src/workers/index.ts'
import { catchError, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { LOOKS, lookUntilParked, makeMemory, parkedPayment, rowOf, SIGNED, VOID } from './remembered.ts'
import { abandonAt, type Charge, payment, payWith, SHORT } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

describe('a processor that remembers its failure', () => {
  test('gives it again to every retry with the same key', async () => {
    const till = makeMemory()
    const stuck = await parkedPayment(shop, 'payments.same_key', till)
    await operator(stuck.once).resolve(stuck.id, { ...SIGNED, allowRetry: true })
    expect(await stuck.once.run(stuck.pay, stuck.call)).toMatchObject({ outcome: 'unknown' })
    expect(new Set(till.asked)).toEqual(new Set([stuck.keyOf(0)]))
    expect(till.charges).toEqual([])
  })

  test('is given a new key once an operator says that the earlier call is void', async () => {
    const till = makeMemory()
    const stuck = await parkedPayment(shop, 'payments.new_key', till)
    const { once, pay, call, id, keyOf } = stuck
    expect((await operator(once).show(id)).record).toMatchObject({ waitsFor: keyOf(0), voidCalls: [] })
    await operator(once).resolve(id, VOID)
    till.looked.length = 0
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', value: { charge: 'ch_1' } })
    expect(till.charges).toEqual([{ key: keyOf(1), id: 'ch_1' }])
    // It was asked about before the new call, and again behind it.
    expect(till.looked).toEqual([keyOf(0), keyOf(0)])
    const { audit, record } = await operator(once).show(id)
    expect(audit.at(-1)).toMatchObject({
      ...SIGNED,
      action: 'void_call',
      to: 'retryable',
      callKey: keyOf(0),
    })
    expect(record).toMatchObject({ voidCalls: [keyOf(0)] })
    expect(await shop.open().run(pay, call)).toMatchObject({ outcome: 'replayed' })
    expect(await shop.countEffects(`${call.key} settled`)).toBe(1)
  })

  test('may fail under the new key too, and under the next', async () => {
    const till = makeMemory()
    const stuck = await parkedPayment(shop, 'payments.third_key', till)
    const { once, pay, call, id, keyOf } = stuck
    await operator(once).resolve(id, VOID)
    till.failing = true
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    expect(await rowOf(shop, call.key)).toMatchObject({ waits_for: keyOf(1) })
    await operator(once).resolve(id, VOID)
    till.failing = false
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed' })
    expect(till.charges).toEqual([{ key: keyOf(2), id: 'ch_1' }])
    expect(till.looked).toEqual(expect.arrayContaining([keyOf(0), keyOf(1)]))
  })

  test('is given it by another process, where the one that was told died at once', async () => {
    const till = makeMemory()
    const stuck = await parkedPayment(shop, 'payments.other_process', till)
    await operator(stuck.once).resolve(stuck.id, VOID)
    await stuck.once.close()
    expect(await shop.open().run(stuck.pay, stuck.call)).toMatchObject({ outcome: 'executed' })
    expect(till.charges).toEqual([{ key: stuck.keyOf(1), id: 'ch_1' }])
  })

  test('counts the lifetime of each key by itself', async () => {
    const till = makeMemory()
    const stuck = await parkedPayment(shop, 'payments.lifetimes', till, { keyLifetimeMs: 3_600_000 })
    const { once, pay, call, id, keyOf } = stuck
    await shop.observer.query(
      `UPDATE onlyonce.records SET point_at = point_at - interval '2 hours' WHERE key = $1`,
      [call.key],
    )
    await operator(once).resolve(id, VOID)
    // The first answer under the new key is lost, and what can be asked shows nothing: it is sent again, for its key is young.
    let first = true
    till.during = async () => {
      if (first) till.lookup = 'not_found'
      const lose = first
      first = false
      if (lose) throw new Error('socket hang up')
    }
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed' })
    expect(till.asked.slice(-2)).toEqual([keyOf(1), keyOf(1)])
    expect(till.charges).toHaveLength(1)
  })

  test('keeps the lifetime of the new key over owners', async () => {
    const till = makeMemory({ lookup: 'not_found' })
    const stuck = await parkedPayment(shop, 'payments.aging', till, { keyLifetimeMs: 3_600_000 })
    await operator(stuck.once).resolve(stuck.id, VOID)
    till.behaviour = 'lose'
    expect(await stuck.once.run(stuck.pay, stuck.call)).toMatchObject({ outcome: 'unknown' })
    await shop.observer.query(
      `UPDATE onlyonce.records SET point_at = point_at - interval '2 hours' WHERE key = $1`,
      [stuck.call.key],
    )
    const { length } = till.asked
    await lookUntilParked(stuck)
    expect(till.asked).toHaveLength(length)
  })
})

describe('the new call', () => {
  test.each(['pending', 'away'] as const)(
    'is not made while the other side does not tell about the earlier one: %s',
    async (lookup) => {
      // Without dedupe: nothing that may have been sent is sent again, and the new call was not.
      const till = makeMemory({ idempotent: false })
      const stuck = await parkedPayment(shop, `payments.untold.${lookup}`, till)
      const { pay, call, id, keyOf } = stuck
      const once = shop.open({ reconcileAfterMs: [1, 1, 1, 1], operations: [pay] })
      await operator(once).resolve(id, VOID)
      till.lookup = lookup
      const { length } = till.asked
      expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
      expect(await rowOf(shop, call.key)).toMatchObject({ waits_for: keyOf(0) })
      expect(till.asked).toHaveLength(length)
      // It is void already: the operator cannot say so twice.
      expect(await catchError(operator(once).resolve(id, VOID))).toMatchObject({ code: 'not_resolvable' })
      till.lookup = 'truth'
      await waitUntil('it is looked at', async () => (await reconciler(once).runOnce()).done > 0)
      expect(till.charges).toEqual([{ key: keyOf(1), id: 'ch_1' }])
      expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: { charge: 'ch_1' } })
    },
  )

  test.each(
    [
      { status: 'succeeded', result: { id: 'ch_0' } },
      { status: 'FOUND' },
      {},
      'found',
      true,
      [],
      undefined,
    ].map((answer) => ({ answer })),
  )('is not made after an answer of another form: $answer', async (answer) => {
    const till = makeMemory({ idempotent: false })
    const stuck = await parkedPayment(shop, 'payments.other_form', till)
    const { once, pay, call, id, keyOf } = stuck
    await operator(once).resolve(id, VOID)
    till.find = async () => answer as never
    const { length } = till.asked
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    expect(await rowOf(shop, call.key)).toMatchObject({ waits_for: keyOf(0) })
    expect(till.asked).toHaveLength(length)
  })

  test('is asked about, and never the earlier one made, when its owner is gone', async () => {
    const till = makeMemory()
    const stuck = await parkedPayment(shop, 'payments.owner_gone', till, { between: abandonAt('charged') })
    const { once, pay, call, id, keyOf } = stuck
    await operator(once).resolve(id, VOID)
    expect(await catchError(shop.open().run(pay, { ...call, ...SHORT }))).toMatchObject({
      code: 'lease_lost',
    })
    till.looked.length = 0
    await waitUntil('the lease is over', async () => (await once.run(pay, call)).outcome !== 'in_progress')
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: { charge: 'ch_1' } })
    expect(till.charges).toEqual([{ key: keyOf(1), id: 'ch_1' }])
    expect(till.asked.filter((key) => key === keyOf(1))).toHaveLength(1)
    expect(till.looked).toEqual([keyOf(0), keyOf(1), keyOf(0)])
  })

  test('also of an undo', async () => {
    const till = makeMemory({ lookup: 'not_found' })
    const undone: string[] = []
    let failing = true
    const find = async (): Promise<Found<Charge>> => ({ status: 'not_found' })
    const transfer = operation('transfers.void_undo', async (op) => {
      await op.call('debited', { call: async () => ({ id: 'd_1' }) })
      op.compensate('debit_undone', {
        call: async ({ key }) => {
          if (
            failing ||
            key === derivedKey({ ...call, operation: 'transfers.void_undo', step: 'debit_undone' })
          )
            throw new Error('500')
          undone.push(key)
          return {}
        },
        find,
      })
      return op.undo(reply(409, { why: 'declined' }))
    })
    const call = { ...payment(), input: undefined }
    const id = { account: call.account, operation: 'transfers.void_undo', key: call.key }
    const once = shop.open({ ...LOOKS, operations: [transfer] })
    expect(await once.run(transfer, call)).toMatchObject({ outcome: 'unknown' })
    await lookUntilParked({ once, id })
    failing = false
    await operator(once).resolve(id, VOID)
    expect(await once.run(transfer, call)).toMatchObject({ outcome: 'executed', status: 409 })
    expect(undone).toEqual([derivedKey({ ...id, step: 'debit_undone', generation: 1 })])
    expect(till.charges).toEqual([])
  })

  test('where records are sealed', async () => {
    const till = makeMemory()
    const pay = payWith(till, { name: 'payments.void_sealed' })
    const call = payment()
    const id = { account: call.account, operation: 'payments.void_sealed', key: call.key }
    const once = shop.open({
      ...LOOKS,
      operations: [pay],
      encryption: 'the-encryption-of-void-calls-0123456789',
    })
    await once.run(pay, call)
    await lookUntilParked({ once, id })
    till.failing = false
    await operator(once).resolve(id, VOID)
    const key = derivedKey({ ...id, step: 'charged' })
    await addEvidence(once, { account: call.account, key, result: { id: 'ch_old', amount: 5 } })
    expect(await once.run(pay, call)).toMatchObject({ value: { charge: 'ch_old' } })
  })
})
