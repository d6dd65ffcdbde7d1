import { expect, test } from 'vitest'
import { operation, reply } from '../../src/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { leaveEffect, makeCall, openShop, type Shop, waitUntil } from '../contract/shop.ts'

const callOf = () => {
  const { account, key } = makeCall()
  return { account, key, input: null }
}

/** What is due is due now, and who is gone is long gone. */
const hasten = (shop: Shop, key: string) =>
  shop.observer.query(
    `UPDATE onlyonce.records SET look_at = CASE WHEN state = 'unknown' THEN clock_timestamp() END,
       lease_until = lease_until - interval '1 hour' WHERE key = $1`,
    [key],
  )

const stateOf = async (shop: Shop, key: string): Promise<string> => {
  const { rows } = await shop.observer.query('SELECT state FROM onlyonce.records WHERE key = $1', [key])
  return rows[0].state
}

const unanswered = async (): Promise<never> => {
  throw new Error('socket hang up')
}

test('an attempt that throws on its way back forgets no undo', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1, 1] })
  const done: string[] = []
  let broken = false
  let answering = false
  const transfer = operation('payments.back_throws', async (op, _: unknown) => {
    if (broken) throw new Error('no configuration today')
    await op.call('debited', { call: async () => done.push('debit') })
    op.compensate('debit_undone', {
      call: async () => (answering ? done.push('undo debit') : unanswered()),
    })
    return op.undo(reply(410, {}))
  })
  const call = callOf()
  expect(await once.run(transfer, call)).toMatchObject({ outcome: 'unknown' })
  broken = true
  answering = true
  await hasten(shop, call.key)
  await reconciler(once).runOnce()
  expect(await stateOf(shop, call.key)).toBe('unknown')
  broken = false
  await hasten(shop, call.key)
  await reconciler(once).runOnce()
  expect(await stateOf(shop, call.key)).toBe('completed')
  expect(done).toEqual(['debit', 'undo debit'])
})

test('an attempt that throws before it comes to what is durable has not changed the operation', async () => {
  const shop = await openShop()
  let broken = false
  let ready = false
  const pay = operation('payments.forth_throws', async (op, _: unknown) => {
    if (broken) throw new Error('no configuration today')
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    return op.transaction('settled', async () => {
      if (!ready) throw new Error('not yet')
      return reply(201, {})
    })
  })
  const once = shop.open()
  const call = callOf()
  await expect(once.run(pay, call)).rejects.toThrow('not yet')
  broken = true
  await expect(once.run(pay, call)).rejects.toThrow('no configuration today')
  broken = false
  ready = true
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', status: 201 })
})

test('an undo that was renamed in flight is parked, and not done twice', async () => {
  const shop = await openShop()
  const done: string[] = []
  const make = (name: string) =>
    operation('payments.undo_renamed', async (op, _: unknown) => {
      await op.call('debited', { call: async () => 1 })
      op.compensate('debit_undone', { idempotent: false, call: unanswered })
      await op.call('credited', { call: async () => 2 })
      op.compensate(name, { call: async () => done.push(name) })
      return op.undo(reply(410, {}))
    })
  const call = callOf()
  const before = shop.open({ reconcileAfterMs: [1, 1, 1] })
  expect(await before.run(make('credit_undone'), call)).toMatchObject({ outcome: 'unknown' })
  await hasten(shop, call.key)
  const after = shop.open({ operations: [make('credit_taken_back')], reconcileAfterMs: [1, 1, 1] })
  await reconciler(after).runOnce()
  expect(done).toEqual(['credit_undone'])
  expect(await stateOf(shop, call.key)).toBe('parked')
})

test('an undo that is gone from the code is parked, and not forgotten', async () => {
  const shop = await openShop()
  const make = (withUndo: boolean) =>
    operation('payments.undo_gone', async (op, _: unknown) => {
      await op.call('debited', { call: async () => 1 })
      op.compensate('debit_undone', { idempotent: false, call: unanswered })
      await op.call('credited', { call: async () => 2 })
      if (withUndo) op.compensate('credit_undone', { call: async () => 3 })
      return op.undo(reply(410, {}))
    })
  const call = callOf()
  const before = shop.open({ reconcileAfterMs: [1, 1, 1] })
  expect(await before.run(make(true), call)).toMatchObject({ outcome: 'unknown' })
  await hasten(shop, call.key)
  const after = shop.open({ operations: [make(false)], reconcileAfterMs: [1, 1, 1] })
  await reconciler(after).runOnce()
  expect(await stateOf(shop, call.key)).toBe('parked')
})

test('a worker whose time is over while a call is in flight does not leave it retryable', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1] })
  let calls = 0
  const pay = operation('payments.time_over', async (op, _: unknown) => {
    await op.call('charged', {
      timeoutMs: 300,
      call: async () => {
        calls += 1
        if (calls > 4) await new Promise(() => {})
        return unanswered()
      },
    })
  })
  const call = callOf()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  await hasten(shop, call.key)
  await reconciler(once, { leaseMs: 450, inProgressMaxMs: 460 }).runOnce()
  expect(calls).toBeGreaterThan(4)
  expect(await stateOf(shop, call.key)).not.toBe('retryable')
})

test.each([
  [
    'renamed',
    (op: { transaction: (name: string, work: () => Promise<unknown>) => Promise<unknown> }) =>
      op.transaction('noted_otherwise', async () => 1),
  ],
  ['dropped', async () => {}],
])('a forward step that was %s is parked, and nothing runs', async (_, change) => {
  const shop = await openShop()
  const ran: string[] = []
  const make = (changed: boolean) =>
    operation('payments.forward_changed', async (op, _: unknown) => {
      if (changed) await change(op)
      else await op.transaction('noted', async () => 1)
      return op.transaction('settled', async () => {
        ran.push('settled')
        if (!changed) throw new Error('not yet')
        return 2
      })
    })
  const call = callOf()
  await shop
    .open()
    .run(make(false), call)
    .catch(() => {})
  expect(await shop.open().run(make(true), call)).toMatchObject({ outcome: 'parked' })
  expect(ran).toEqual(['settled'])
})

test('a process that cannot open what it takes over does not wear the record out', async () => {
  const shop = await openShop()
  const a = 'an-encryption-key-for-these-tests-a12345'
  const b = 'an-encryption-key-for-these-tests-b12345'
  let ready = false
  const pay = operation('payments.other_ring', async (op, _: unknown) => {
    await op.transaction('noted', async () => 1)
    if (!ready) await new Promise(() => {})
    return reply(201, {})
  })
  const behind = shop.open({ encryption: { current: 'a', keys: { a } }, operations: [pay] })
  await behind.start()
  const ahead = shop.open({ encryption: { current: 'b', keys: { a, b } }, operations: [pay] })
  const call = callOf()
  ahead.run(pay, call).catch(() => {})
  const fenceOf = async () => {
    const { rows } = await shop.observer.query('SELECT fence FROM onlyonce.records WHERE key = $1', [
      call.key,
    ])
    return Number(rows[0]?.fence ?? 0)
  }
  await waitUntil('it is begun', async () => (await fenceOf()) > 0)
  for (let i = 0; i < 3; i += 1) {
    await hasten(shop, call.key)
    await completer(behind, { graceMs: 1 }).runOnce()
  }
  ready = true
  expect(await fenceOf()).toBe(1)
})
