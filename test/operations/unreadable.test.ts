import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { operation, reply } from '../../src/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { catchError, leaveEffect, openShop, type Shop } from '../contract/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const SEALED = { encryption: 'reply-key-a-0123456789-0123456789-0123456789' }
const DAMAGE = 'progress = set_byte(progress, 20, (get_byte(progress, 20) + 1) % 256)'

async function rowOf(key: string) {
  const { rows } = await shop.observer.query(
    'SELECT state, error_code, fence::int, waits_for FROM onlyonce.records WHERE key = $1',
    [key],
  )
  return rows[0]
}

const change = (key: string, set: string) =>
  shop.observer.query(`UPDATE onlyonce.records SET ${set} WHERE key = $1`, [key])

function makePayment(name: string) {
  const steps = { calls: 0, broken: true }
  const pay = operation(name, async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, op.key))
    if (steps.broken) throw new Error('not today')
    await op.call('charged', {
      idempotent: false,
      call: async () => {
        steps.calls += 1
        throw new Error('socket hang up')
      },
    })
    return reply(201)
  })
  return { pay, steps, call: { account: 'acct_1', key: randomUUID(), input: { amount: 5 } } }
}

test.each([
  // First: a process without the key is refused where records are sealed.
  ['plain', {}, "progress = 'no JSON'::bytea"],
  ['sealed', SEALED, DAMAGE],
])(
  'a retry parks an operation whose %s steps cannot be read, and nothing runs',
  async (how, options, damage) => {
    const once = shop.open(options)
    const { pay, steps, call } = makePayment(`unreadable.retry_${how}`)
    await catchError(once.run(pay, call))
    await change(call.key, damage)
    steps.broken = false
    for (const _ of [1, 2]) expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
    expect(await rowOf(call.key)).toMatchObject({
      state: 'parked',
      error_code: 'progress_unreadable',
      fence: 2,
    })
    expect(steps.calls).toBe(0)
    expect(await shop.countEffects(call.key)).toBe(1)
  },
)

test('a worker parks it at once, with the call that it was in doubt about', async () => {
  const { pay, steps, call } = makePayment('unreadable.worker')
  const once = shop.open({ ...SEALED, operations: [pay], reconcileAfterMs: [1, 1, 1] })
  steps.broken = false
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  const { waits_for: waitsFor } = await rowOf(call.key)
  await change(call.key, `${DAMAGE}, look_at = clock_timestamp()`)
  await reconciler(once).runOnce()
  const parked = { state: 'parked', error_code: 'progress_unreadable', fence: 2, waits_for: waitsFor }
  expect(await rowOf(call.key)).toEqual(parked)
  await reconciler(once).runOnce()
  await completer(once, { graceMs: 1 }).runOnce()
  expect(await rowOf(call.key)).toEqual(parked)
  expect(steps.calls).toBe(1)
})
