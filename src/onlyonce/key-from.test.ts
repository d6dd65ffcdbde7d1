import { expect, test } from 'vitest'
import { businessKey, onlyonce } from '../index.ts'
import { memory } from '../store/memory/index.ts'

const once = onlyonce({
  store: memory(),
  secret: 'a secret of at least thirty-two bytes',
  background: false,
})
const call = { account: 'acme', operation: 'orders.create' }

test('members of the input name the action, as businessKey does', async () => {
  let runs = 0
  const pay = (orderId: string | number, amount = 1) =>
    once.execute({ ...call, input: { orderId, amount }, keyFrom: ['orderId'] }, async () => {
      runs += 1
      return runs
    })
  expect(await pay('ord_1')).toEqual({ outcome: 'executed', value: 1 })
  expect(await pay('ord_1')).toEqual({ outcome: 'replayed', value: 1 })
  expect(await pay('ord_2')).toEqual({ outcome: 'executed', value: 2 })
  // It is what the input says beside: another amount for the same order is another request.
  expect(await pay('ord_1', 2)).toEqual({ outcome: 'key_reused' })
  const key = businessKey('orders.create', 'ord_1')
  expect(await once.explain({ ...call, key })).toMatchObject({ state: 'completed' })
  expect(await once.explain({ ...call, input: { orderId: 'ord_1' }, keyFrom: ['orderId'] })).toMatchObject({
    state: 'completed',
  })
})

test('the order of the members counts, and a version of the operation does not', async () => {
  const input = { a: 'x', b: 'y' }
  const work = async () => 1
  const first = await once.execute({ ...call, operation: 'pairs@1', input, keyFrom: ['a', 'b'] }, work)
  const again = await once.execute({ ...call, operation: 'pairs@2', input, keyFrom: ['a', 'b'] }, work)
  const turned = await once.execute({ ...call, operation: 'pairs', input, keyFrom: ['b', 'a'] }, work)
  expect([first.outcome, again.outcome, turned.outcome]).toEqual(['executed', 'replayed', 'executed'])
})

test.each([
  ['a member that is missing', { input: { other: 1 }, keyFrom: ['orderId'] }, /keyFrom names "orderId"/],
  ['one that is null', { input: { orderId: null }, keyFrom: ['orderId'] }, /keyFrom names "orderId"/],
  [
    'one of its prototype',
    { input: {}, keyFrom: ['toString'] },
    /keyFrom names "toString", and the input has no such member/,
  ],
  ['no input', { keyFrom: ['orderId'] }, /keyFrom names "orderId"/],
  ['a member that is an object', { input: { orderId: {} }, keyFrom: ['orderId'] }, /neither a string nor/],
  ['no member', { input: {}, keyFrom: [] }, /There is no identifier/],
  ['a text in place of a list', { input: { orderId: 'x' }, keyFrom: 'orderId' }, /keyFrom is a list/],
  ['a key beside it', { input: { orderId: 'x' }, keyFrom: ['orderId'], key: 'k' }, /not both/],
])('%s is refused before anything runs', async (_, given, message) => {
  let runs = 0
  const running = once.execute({ ...call, ...given } as never, async () => {
    runs += 1
  })
  await expect(running).rejects.toThrow(message)
  expect(runs).toBe(0)
})
