import { expect, test } from 'vitest'
import { OnlyonceError, operation, reply } from '../../src/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { leaveEffect, makeCall, openProxy, openShop, settleWithin, waitUntil } from '../contract/shop.ts'

const RUNS = 30

test('operations on connections that are cut at COMMIT take effect once, and tell what is there', async () => {
  const shop = await openShop()
  const { proxy, pool } = await openProxy(shop, { seed: 23, poolOptions: { max: 10 } })
  const charges = new Map<string, number>()
  const pay = operation('payments.cut', async (op, _: unknown) => {
    await op.transaction('created', (tx) => leaveEffect(tx, `${op.key} created`))
    const first = await op.call('charged', {
      call: async ({ key }) => {
        charges.set(key, (charges.get(key) ?? 0) + 1)
        return key
      },
    })
    const second = await op.call('captured', { call: async ({ key }) => key })
    await op.transaction('nothing', async () => null)
    return op.transaction('settled', async (tx) => {
      await leaveEffect(tx, `${op.key} settled`)
      return reply(201, { first, second })
    })
  })
  const once = shop.open({ pool, operations: [pay], reconcileAfterMs: [1, 1, 1, 1, 1, 1, 1, 1] })
  await once.start()
  proxy.setFault({ kind: 'cut_at_commit', when: 'random', rate: 0.3 })
  const calls = Array.from({ length: RUNS }, () => {
    const { account, key } = makeCall()
    return { account, key, input: null, leaseMs: 1_000 }
  })
  const told = await Promise.all(
    calls.map((call) =>
      settleWithin(
        50_000,
        once.run(pay, call).catch((error) => {
          if (error instanceof OnlyonceError) return error
          throw error
        }),
      ),
    ),
  )
  proxy.setFault(null)
  const cut = Object.values(proxy.stats.commitsCut).reduce((total, count) => total + count, 0)
  expect(cut).toBeGreaterThan(10)
  const direct = shop.open({ operations: [pay], reconcileAfterMs: [1, 1, 1, 1, 1, 1, 1, 1] })
  for (const [i, call] of calls.entries()) {
    const heard = told[i]!
    if ('outcome' in heard && heard.outcome === 'executed') {
      expect(await shop.countEffects(`${call.key} settled`)).toBe(1)
    }
    await waitUntil('it is done', async () => {
      await completer(direct, { graceMs: 1 }).runOnce()
      await reconciler(direct).runOnce()
      const result = await direct.run(pay, call)
      return result.outcome === 'replayed' || result.outcome === 'executed'
    })
    expect(await shop.countEffects(`${call.key} created`)).toBe(1)
    expect(await shop.countEffects(`${call.key} settled`)).toBe(1)
  }
  expect(charges.size).toBe(RUNS)
}, 120_000)
