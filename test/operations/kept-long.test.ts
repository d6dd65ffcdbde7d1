import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted, operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { completer } from '../../src/workers/index.ts'
import { openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { payment, SHORT } from './till.ts'

const HOUR_MS = 3_600_000
const GIVEN = { by: 'ann', why: 'ticket 1', reply: { status: 201, body: '{}' } }

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

/** A payment whose first step is a transaction, so that the record is there before its call is known. */
function payThat(name: string, lifetimeH: number, call: () => Promise<unknown>) {
  return operation(name, async (op) => {
    await op.transaction('created', async () => 1)
    await op.call('charged', { keyLifetimeMs: lifetimeH * HOUR_MS, call })
    return reply(201, {})
  })
}

const never = () => new Promise<never>(() => {})

/** For how many hours the record is kept from now on. */
async function keptHours(key: string): Promise<number> {
  const { rows } = await shop.observer.query(
    `SELECT state, round(extract(epoch FROM expires_at - clock_timestamp()) / 3600)::int AS hours
     FROM onlyonce.records WHERE key = $1`,
    [key],
  )
  expect(rows[0].state).toBe('completed')
  return rows[0].hours
}

/** Everything about the record happened so long ago. */
async function letHoursPass(key: string, hours: number): Promise<void> {
  const columns = ['created_at', 'attempted_at', 'changed_at', 'point_at', 'lease_until', 'expires_at']
  const moved = columns.map((name) => `${name} = ${name} - $2 * interval '1 hour'`)
  await shop.observer.query(`UPDATE onlyonce.records SET ${moved.join(', ')} WHERE key = $1`, [key, hours])
}

/** The owner is in the call, and gives no sign of life any more. */
async function vanishInCall(name: string, lifetimeH: number, retentionMs: number) {
  const call = payment()
  let calls = 0
  let answers = false
  const pay = payThat(name, lifetimeH, async () => {
    calls += 1
    if (!answers) await never()
    return 'ch_1'
  })
  const once = shop.open({ retentionMs, operations: [pay] })
  const gone = once.run(pay, { ...call, ...SHORT }).catch(() => {})
  await waitUntil('the call is under way', () => calls > 0)
  await gone
  // A sign of life may still be on its way: it is not one of this attempt any more.
  await shop.observer.query('UPDATE onlyonce.records SET attempt_id = gen_random_uuid() WHERE key = $1', [
    call.key,
  ])
  await waitUntil('the lease is over', async () => {
    const { rows } = await shop.observer.query(
      'SELECT lease_until < clock_timestamp() AS over FROM onlyonce.records WHERE key = $1',
      [call.key],
    )
    return rows[0].over
  })
  answers = true
  return { once, call, id: { account: call.account, operation: name, key: call.key } }
}

describe.each([
  ['as long as retentionMs', 24],
  ['longer than retentionMs', 72],
])('a call whose key is remembered %s, behind a transaction', (length, lifetimeH) => {
  const named = (name: string) => `payments.${name}_${length.split(' ')[0]}`

  test('its owner vanished in it, and a worker completed the record later', async () => {
    const { once, call } = await vanishInCall(named('worker'), lifetimeH, 24 * HOUR_MS)
    await letHoursPass(call.key, 10)
    await completer(once, { graceMs: 1 }).runOnce()
    expect(await keptHours(call.key)).toBe(lifetimeH)
  })

  test('its owner vanished in it, and an operator gave the reply', async () => {
    const { once, call, id } = await vanishInCall(named('operator'), lifetimeH, 24 * HOUR_MS)
    await letHoursPass(call.key, 10)
    await operator(once).resolve(id, GIVEN)
    expect(await keptHours(call.key)).toBe(lifetimeH)
  })

  test('it is proved that it was not executed, and an operator gave the request up', async () => {
    const call = payment()
    const pay = payThat(named('given_up'), lifetimeH, async () => {
      throw notExecuted()
    })
    const once = shop.open({ retentionMs: 24 * HOUR_MS })
    await once.run(pay, call).catch(() => {})
    await letHoursPass(call.key, 10)
    const id = { account: call.account, operation: pay.name, key: call.key }
    expect(await operator(once).giveUp(id, GIVEN)).toEqual({ givenUp: true, state: 'retryable' })
    expect(await keptHours(call.key)).toBe(lifetimeH)
  })

  test.each([
    ['parked', []],
    ['unknown', [HOUR_MS]],
  ])(
    'a retry that asks for less, does not come to the call and leaves it %s does not shorten it',
    async (state, reconcileAfterMs) => {
      const { once, call, id } = await vanishInCall(named(`retry_${state}`), lifetimeH, 24 * HOUR_MS)
      await letHoursPass(call.key, 10)
      const pay = operation(id.operation, async (op) => {
        await op.transaction('created', async () => 1)
        throw new Error('not now')
      })
      const again = shop.open({ retentionMs: HOUR_MS, reconcileAfterMs })
      // A sign of life of the owner that is gone may come late, and holds the key once more.
      await waitUntil(`the retry has left it ${state}`, async () => {
        await again.run(pay, call).catch(() => {})
        return (await once.explain(id)).state === state
      })
      await operator(once).resolve(id, GIVEN)
      expect(await keptHours(call.key)).toBe(lifetimeH)
    },
  )
})
