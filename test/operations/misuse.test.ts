import { expect, test } from 'vitest'
import { type Op, operation, reply } from '../../src/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { catchError, openShop, waitUntil } from '../contract/shop.ts'
import { payment, SHORT } from './till.ts'

test('a step that ends its own transaction is parked, and never run again', async () => {
  const shop = await openShop()
  const pay = operation('misuse.ends', async (op, _: { amount: number }) => {
    await op.transaction('committed', async (tx) => {
      await tx.query(`INSERT INTO effects (note) VALUES ('${op.key}'); COMMIT; SELECT 1`)
    })
    return reply(201)
  })
  const once = shop.open({ reconcileAfterMs: [1, 1, 1] })
  const call = payment()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
  expect(await reconciler(once).runOnce()).toEqual({ done: 0, more: false })
  expect(await completer(once, { graceMs: 1 }).runOnce()).toEqual({ done: 0, more: false })
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
  expect(await shop.countEffects(call.key)).toBe(1)
})

test.each(['Set-Cookie', 'date', 'RateLimit-Limit', 'traceparent'])(
  'reply() refuses the header %s',
  (name) => {
    expect(() => reply(201, {}, { [name]: 'x' })).toThrow(/never stored or replayed/)
  },
)

test.each([
  ['x y', '1'],
  ['x-a', '1\r\nset-cookie: a=b'],
  ['x-a', '5 €'],
  ['', '1'],
])('reply() refuses the header %j: %j, which cannot be sent', (name, value) => {
  expect(() => reply(201, {}, { [name]: value })).toThrow(/cannot be sent/)
})

test.each([0, 199, 600, 201.5])('reply() refuses the status %s', (status) => {
  expect(() => reply(status)).toThrow(/status from 200 to 599/)
})

test('"not now" is no end for a worker either', async () => {
  const shop = await openShop()
  let first = true
  const pay = operation('misuse.not_now', async (op, _: { amount: number }) => {
    await op.transaction('noted', async () => 1)
    if (first) {
      first = false
      await new Promise(() => {})
    }
    return reply(429, { why: 'later' })
  })
  const call = { ...payment(), ...SHORT }
  await catchError(shop.open().run(pay, call))
  const once = shop.open({ operations: [pay] })
  await waitUntil('somebody goes on', async () => (await completer(once, { graceMs: 1 }).runOnce()).done > 0)
  // The owner before may have gone on to a call that this code has not asked about: nobody can know.
  expect((await once.explain({ ...call, operation: 'misuse.not_now' })).state).toBe('unknown')
})

const call = async () => 1
const WRONG: Readonly<Record<string, (op: Op) => unknown>> = {
  'call is a function': (op) => op.call('a', {} as never),
  'find is a function': (op) => op.call('a', { call, find: 1 as never }),
  'idempotent is true or false': (op) => op.call('a', { call, idempotent: 'no' as never }),
  'timeoutMs is a whole number': (op) => op.call('a', { call, timeoutMs: Number.NaN }),
  'visibleWithinMs is a whole number': (op) => op.call('a', { call, visibleWithinMs: -1 }),
  'keyLifetimeMs is a whole number': (op) => op.call('a', { call, keyLifetimeMs: '1d' as never }),
  'isolation is one of': (op) => op.transaction('a', call, { isolation: 'dirty' as never }),
  'has a function': (op) => op.transaction('a', undefined as never),
  'control character': (op) => op.transaction('a\0b', call),
  'only spaces': (op) => op.call('  ', { call }),
  'Two steps are called': async (op) => {
    await op.transaction('a', call)
    await op.transaction('a', call)
  },
  'at most 200 steps': async (op) => {
    for (let i = 0; i <= 200; i += 1) await op.transaction(`step ${i}`, call, { isolation: 'read committed' })
  },
}

test.each(Object.entries(WRONG))('what is wrong with a step is told at once: %s', async (told, use) => {
  const once = (await openShop()).open()
  const wrong = operation('misuse.wrong', async (op, _: { amount: number }) => {
    await use(op)
    return reply(201)
  })
  expect(await catchError(once.run(wrong, payment()))).toMatchObject({
    code: 'option_invalid',
    message: expect.stringContaining(told),
  })
})
