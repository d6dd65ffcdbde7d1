import { expect, test } from 'vitest'
import { completer, operation, reconciler, reply } from '../../src/index.ts'
import { catchError, openShop, waitUntil } from '../contract/shop.ts'
import { payment, SHORT } from './till.ts'

test('a step that ends its own transaction is parked, and never run again', async () => {
  const shop = await openShop()
  const pay = operation('misuse.ends', async (op, _: { amount: number }) => {
    await op.atomic('committed', async (tx) => {
      await tx.query(`INSERT INTO effects (note) VALUES ('${op.key}'); COMMIT; SELECT 1`)
    })
    return reply(201)
  })
  const once = shop.open({ reconcile_after_ms: [1, 1, 1] })
  const call = payment()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
  expect(await reconciler(once).runOnce()).toEqual({ done: 0, more: false })
  expect(await completer(once, { grace_ms: 1 }).runOnce()).toEqual({ done: 0, more: false })
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
  expect(await shop.countEffects(call.key)).toBe(1)
})

test.each(['Set-Cookie', 'date', 'RateLimit-Limit', 'traceparent'])(
  'reply() refuses the header %s',
  (name) => {
    expect(() => reply(201, {}, { [name]: 'x' })).toThrow(/never stored or replayed/)
  },
)

test.each([0, 199, 600, 201.5])('reply() refuses the status %s', (status) => {
  expect(() => reply(status)).toThrow(/status from 200 to 599/)
})

test('"not now" is no end for a worker either', async () => {
  const shop = await openShop()
  let first = true
  const pay = operation('misuse.not_now', async (op, _: { amount: number }) => {
    await op.atomic('noted', async () => 1)
    if (first) {
      first = false
      await new Promise(() => {})
    }
    return reply(429, { why: 'later' })
  })
  const call = { ...payment(), ...SHORT }
  await catchError(shop.open().run(pay, call))
  const once = shop.open({ operations: [pay] })
  await waitUntil('somebody goes on', async () => (await completer(once, { grace_ms: 1 }).runOnce()).done > 0)
  // The owner before may have gone on to a call that this code has not asked about: nobody can know.
  expect((await once.explain({ ...call, operation: 'misuse.not_now' })).state).toBe('unknown')
})
