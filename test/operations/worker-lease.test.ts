import { beforeAll, expect, test } from 'vitest'
import { operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { catchError, openShop, type Shop } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { payment } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

/** A saga whose second call takes longer than two thirds of a short lease may. */
function transferThat(name: string, between: () => Promise<void>) {
  const done: string[] = []
  const transfer = operation(name, async (op) => {
    await op.call('debited', { call: async () => done.push('debit') })
    op.compensate('debit_undone', { call: async () => done.push('undo') })
    await op.transaction('noted', async () => 1)
    await between()
    await op.transaction('checked', async () => 1)
    await op.call('credited', { timeoutMs: 5_000, call: async () => done.push('credit') })
    return reply(201, {})
  })
  return { transfer, done }
}

test('a worker whose lease is too short for a call undoes nothing, and another goes on', async () => {
  let gone = true
  const { transfer, done } = transferThat('transfers.short_worker', async () => {
    if (gone) await new Promise(() => {})
  })
  const call = payment()
  const heard = makeRecorder()
  const once = shop.open({ operations: [transfer], observe: heard })
  await catchError(once.run(transfer, { ...call, leaseMs: 8_000, inProgressMaxMs: 500 }))
  await shop.observer.query('UPDATE onlyonce.records SET lease_until = now() WHERE key = $1', [call.key])
  gone = false
  await completer(once, { leaseMs: 300, graceMs: 1 }).runOnce()
  const id = { account: call.account, operation: transfer.name, key: call.key }
  const { state, record } = await operator(once).show(id)
  expect([state, record?.failure?.code, record?.recoveryPoint]).toEqual([
    'unknown',
    'option_invalid',
    'checked',
  ])
  expect(record?.failure?.message).toContain('this one asks for 5000')
  expect(done).toEqual(['debit'])
  expect(heard.of('reconcile_failed').map(({ failure }) => failure.code)).toEqual(['option_invalid'])
  // Done outside, it does not wait for a retry: a worker looks at it.
  await shop.observer.query('UPDATE onlyonce.records SET look_at = now() WHERE key = $1', [call.key])
  await reconciler(once).runOnce()
  expect(done).toEqual(['debit', 'credit'])
})

test('nor does a caller with such a lease: it is told, and a retry with a longer one goes on', async () => {
  const { transfer, done } = transferThat('transfers.short_caller', async () => {})
  const call = payment()
  const once = shop.open()
  const told = await catchError(once.run(transfer, { ...call, leaseMs: 300 }))
  expect(told).toMatchObject({ code: 'option_invalid' })
  expect(done).toEqual(['debit'])
})
