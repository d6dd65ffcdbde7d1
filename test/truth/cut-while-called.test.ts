import { expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { operation, reply } from '../../src/index.ts'
import { reconciler } from '../../src/workers/index.ts'
import { leaveEffect, openProxy, openShop, settleWithin, waitUntil } from '../contract/shop.ts'

const SOON_MS = 60_000
const REFUSED_BEFORE = 3

/** Where the call is: behind a durable step, or first of all. */
test.each(['behind a step', 'first'] as const)(
  'a link to the database that is cut while a call runs, %s: the answer is what the record is',
  async (place) => {
    const shop = await openShop()
    const { proxy, pool } = await openProxy(shop)
    const charges: string[] = []
    const pay = operation(`truth.cut_${place.replaceAll(' ', '_')}`, async (op, _: unknown) => {
      if (place === 'behind a step')
        await op.transaction('created', (tx) => leaveEffect(tx, `${op.key} created`))
      const charge = await op.call('charged', {
        call: async ({ key }) => {
          proxy.setFault({ kind: 'reset' })
          await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
          proxy.setFault({ kind: 'refuse' })
          charges.push(key)
          return key
        },
      })
      return op.transaction('settled', async (tx) => {
        await leaveEffect(tx, `${op.key} settled`)
        return reply(201, { charge })
      })
    })
    const once = shop.open({ pool, operations: [pay], reconcileAfterMs: [1, 1, 1] })
    await once.start()
    const POST = idempotent(once, { account: () => 'acct_1', operation: pay })
    const key = `cut-${place.replaceAll(' ', '-')}`
    const send = () =>
      POST(
        new Request('http://localhost/payments', {
          method: 'POST',
          headers: { 'idempotency-key': key, 'content-type': 'application/json' },
          body: '{"amount":5}',
        }),
      )
    const answered = send()
    await proxy.waitFor(({ connectionsRefused }) => connectionsRefused >= REFUSED_BEFORE)
    proxy.setFault(null)
    const answer = await settleWithin(SOON_MS, answered)
    const problem = (await answer.json()) as { detail: string }
    expect(charges.length).toBe(1)
    expect(problem).toMatchObject({ code: 'outcome_pending', retryable: true, executed: 'unknown' })
    expect(answer.status).toBe(409)
    expect(problem.detail).not.toMatch(/nothing/i)
    const id = { account: 'acct_1', operation: pay.name, key }
    const story = await once.explain(id)
    expect(story.state).toBe('unknown')
    expect(JSON.stringify(story)).not.toMatch(/nothing was executed|started nothing|changed nothing/)
    await waitUntil('it is done', async () => {
      await reconciler(once).runOnce()
      return (await once.explain(id)).state === 'completed'
    })
    const retried = await send()
    expect([retried.status, await retried.json()]).toEqual([201, { charge: charges[0] }])
    expect(charges.length).toBe(1)
    expect(await shop.countEffects(`${key} settled`)).toBe(1)
  },
)
