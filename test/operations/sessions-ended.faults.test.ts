import { expect, test } from 'vitest'
import { OnlyonceError, operation, reply } from '../../src/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { leaveEffect, makeCall, openShop, type Shop, waitUntil } from '../contract/shop.ts'

const CALLS = 90
const AT_ONCE = 15

/** Ends sessions of the product at random until it is told to stop. */
function killSessions(shop: Shop): () => Promise<void> {
  let going = true
  const killing = (async () => {
    while (going) {
      await shop.observer.query(
        `SELECT pg_terminate_backend(pid) FROM (
           SELECT pid FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
           ORDER BY random() LIMIT 2) AS chosen`,
      )
      await new Promise((resolve) => setTimeout(resolve, 15))
    }
  })()
  return async () => {
    going = false
    await killing
  }
}

test('operations whose sessions are ended at random take effect once, and no error of the driver gets out', async () => {
  const shop = await openShop()
  const undone: string[] = []
  const pay = operation('payments.killed', async (op, _: unknown) => {
    await op.transaction('created', (tx) => leaveEffect(tx, `${op.key} created`))
    const charge = await op.call('charged', { call: async ({ key }) => key })
    op.compensate('charge_undone', { call: async () => undone.push(op.key) })
    await op.call('captured', { call: async ({ key }) => key })
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    return op.transaction('settled', async (tx) => {
      await leaveEffect(tx, `${op.key} settled`)
      return reply(201, { charge })
    })
  })
  const options = { operations: [pay], reconcileAfterMs: [1, 1, 1, 1, 1, 1, 1, 1] }
  const doors = [shop.open(options), shop.open(options)] as const
  await Promise.all(doors.map((door) => door.start()))
  const stop = killSessions(shop)
  const calls = Array.from({ length: CALLS }, () => {
    const { account, key } = makeCall()
    return { account, key, input: null, leaseMs: 600 }
  })
  const strange: unknown[] = []
  for (let i = 0; i < CALLS; i += AT_ONCE) {
    const some = calls.slice(i, i + AT_ONCE)
    const runs = some.flatMap((call) => doors.map((door) => door.run(pay, call)))
    for (const end of await Promise.allSettled(runs)) {
      if (end.status === 'rejected' && !(end.reason instanceof OnlyonceError)) strange.push(end.reason)
    }
  }
  await stop()
  expect(strange).toEqual([])
  for (const call of calls) {
    await waitUntil('it is done', async () => {
      await completer(doors[0], { graceMs: 1, leaseMs: 600 })
        .runOnce()
        .catch(() => {})
      await reconciler(doors[0], { leaseMs: 600 })
        .runOnce()
        .catch(() => {})
      const ended = await doors[1].run(pay, call).catch(() => null)
      return ended?.outcome === 'replayed' || ended?.outcome === 'executed'
    })
    for (const step of ['created', 'noted', 'settled']) {
      expect([step, await shop.countEffects(`${call.key} ${step}`)]).toEqual([step, 1])
    }
  }
  expect(undone).toEqual([])
}, 100_000)
