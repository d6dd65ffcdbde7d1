import { expect, test } from 'vitest'
import { operation, reply } from '../../src/index.ts'
import { relay } from '../../src/outbox/index.ts'
import { catchError, openShop } from '../contract/shop.ts'
import { payment } from './till.ts'

test('events and jobs of a step leave with its commit, and not without', async () => {
  const shop = await openShop()
  let broken = true
  const pay = operation('payments.telling', (op, _: { amount: number }) =>
    op.transaction('settled', async (tx) => {
      await op.emit(tx, 'payment.captured', { id: op.key }, { aggregate: `payment:${op.key}` })
      await op.stage(tx, 'send_receipt', { id: op.key }, { key: op.key })
      if (broken) throw new Error('not yet')
      return reply(201, { id: op.key })
    }),
  )
  const once = shop.open()
  const heard: unknown[] = []
  const telling = relay(once, {
    destinations: {
      books: async (events) => {
        for (const { account, type, payload } of events) heard.push({ account, type, payload })
      },
    },
    jobs: {
      send_receipt: async ({ account, payload }) => {
        heard.push({ account, job: 'send_receipt', payload })
      },
    },
  })
  const call = payment()
  await catchError(once.run(pay, call))
  await telling.runOnce()
  await telling.drain()
  expect(heard).toEqual([])
  broken = false
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed' })
  while ((await telling.runOnce()).done > 0) await telling.drain()
  const payload = { id: call.key }
  expect(heard).toHaveLength(2)
  expect(heard).toContainEqual({ account: call.account, type: 'payment.captured', payload })
  expect(heard).toContainEqual({ account: call.account, job: 'send_receipt', payload })
})
