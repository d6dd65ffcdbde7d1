import { expect, test } from 'vitest'
import { operation, reply } from '../../src/index.ts'
import { reconciler } from '../../src/workers/index.ts'
import { leaveEffect, makeCall, openShop, waitUntil } from '../contract/shop.ts'

test('undos of calls and of writes are done in reverse', async () => {
  const shop = await openShop()
  const done: string[] = []
  const transfer = operation('undone.reverse', async (op, _: unknown) => {
    await op.call('debited', { call: async () => done.push('debit') })
    op.compensate('debit_undone', { call: async () => done.push('debit undone') })
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    op.compensate('note_undone', async () => done.push('note undone'))
    await op.call('credited', { call: async () => done.push('credit') })
    op.compensate('credit_undone', { call: async () => done.push('credit undone') })
    return op.undo(reply(410, {}))
  })
  const { account, key } = makeCall()
  const result = await shop.open().run(transfer, { account, key, input: null })
  expect(result).toMatchObject({ outcome: 'executed', status: 410 })
  expect(done).toEqual(['debit', 'credit', 'credit undone', 'note undone', 'debit undone'])
})

test('nothing is undone by an attempt that throws before it comes to a call in doubt', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1] })
  const done: string[] = []
  let broken = false
  let credited = false
  const transfer = operation('undone.doubt', async (op, _: unknown) => {
    await op.call('debited', { call: async () => done.push('debit') })
    op.compensate('debit_undone', { call: async () => done.push('debit undone') })
    if (broken) throw new Error('no configuration today')
    await op.call('credited', {
      idempotent: false,
      call: async (): Promise<string> => {
        done.push('credit')
        throw new Error('socket hang up')
      },
      find: async () => (credited ? { status: 'found', result: 'credit_1' } : { status: 'pending' }),
    })
    return reply(201, {})
  })
  const { account, key } = makeCall()
  const call = { account, key, input: null }
  const look = () => waitUntil('it is looked at', async () => (await reconciler(once).runOnce()).done > 0)
  expect(await once.run(transfer, call)).toMatchObject({ outcome: 'unknown' })
  broken = true
  await look()
  expect(await once.run(transfer, call)).toMatchObject({ outcome: 'unknown' })
  broken = false
  credited = true
  await look()
  expect(await once.run(transfer, call)).toMatchObject({ outcome: 'replayed', status: 201 })
  expect(done).toEqual(['debit', 'credit'])
})
