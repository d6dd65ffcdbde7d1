import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { type Onlyonce, onlyonce } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { reconciler } from '../../src/workers/index.ts'
import { makeTill, payment, payWith } from '../operations/till.ts'
import { beginOutside, makeCall, makeGate, openShop, SECRET, type Shop } from './shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const LEASE_MS = 30_000
const EVERY_MS = LIMITS.workerEveryMs

/** A service with a request of `key` at work in it, and the answer to a retry somewhere else. */
async function meetOwner<Tx>(owners: Onlyonce<Tx>, others: Onlyonce<Tx>, age: () => Promise<void> | void) {
  const gate = makeGate()
  const protect = (once: Onlyonce<Tx>) =>
    idempotent(once, { account: () => 'acct_1', operation: 'orders', leaseMs: LEASE_MS }, async () => {
      await gate.pass()
      return new Response('done')
    })
  const headers = { 'Idempotency-Key': randomUUID() }
  const request = () => new Request('http://localhost/orders', { method: 'POST', headers })
  const working = protect(owners)(request())
  await gate.reached
  await age()
  const [answer, again] = [await protect(others)(request()), await protect(owners)(request())]
  gate.open()
  await working
  return { here: secondsOf(again), elsewhere: secondsOf(answer) }
}

/** The operation answers. */

const secondsOf = ({ headers }: Response) => Number(headers.get('retry-after'))

/** Lets a record be older than it is, and its lease end sooner. */
async function age(key: string, ms: number, leaseLeftMs: number): Promise<void> {
  await shop.observer.query(
    `UPDATE onlyonce.records SET attempted_at = clock_timestamp() - $2 * interval '1 ms',
       lease_until = clock_timestamp() + $3 * interval '1 ms' WHERE key = $1`,
    [key, ms, leaseLeftMs],
  )
}

describe('what a client that met an owner is told', () => {
  test.each([
    [200, 1],
    [10_000, 10],
    [25_000, 5],
  ])('with an owner at work for %i ms, in memory', async (ageMs, seconds) => {
    let now = 1_000_000
    const store = memory({ clock: () => now })
    const open = () => onlyonce({ secret: SECRET, store })
    const told = await meetOwner(open(), open(), () => {
      now += ageMs
    })
    expect(told.elsewhere).toBe(seconds)
    // The process of the owner knows that it lives, and how long it has worked by its own clock.
    expect(told.here).toBe(1)
  })

  test.each([
    [10_000, LEASE_MS, 10],
    [40_000, 7_000, 7],
  ])(
    'with an owner at work for %i ms and %i ms left of its lease, in PostgreSQL',
    async (ms, left, seconds) => {
      const once = shop.open()
      const call = { ...makeCall(), leaseMs: LEASE_MS }
      const gate = makeGate()
      const working = once.execute(call, () => gate.pass())
      await gate.reached
      await age(call.key, ms, left)
      const met = await shop.open().execute(call, async () => undefined)
      gate.open()
      await working
      if (met.outcome !== 'in_progress') throw new Error(`It met ${met.outcome}.`)
      expect(Math.ceil(met.retryAfterMs / 1_000)).toBeGreaterThanOrEqual(seconds - 1)
      expect(Math.ceil(met.retryAfterMs / 1_000)).toBeLessThanOrEqual(seconds + 3)
    },
  )

  test('with a transaction that is open, as long again as it was waited for', async () => {
    const once = shop.open({ store: { lockWaitMaxMs: 1_500 } })
    const call = makeCall()
    const holder = await beginOutside(shop)
    await once.start()
    // An insert of another's that is not committed holds the key.
    await holder.query(
      `INSERT INTO onlyonce.records (account, operation, key, state, fence, attempt_id, owner, fingerprint,
         fingerprint_key_id, created_at, attempted_at, changed_at, lease_until)
       VALUES ($1, $2, $3, 'in_progress', 1, gen_random_uuid(), 'o', '', 'k', now(), now(), now(), now())`,
      [call.account, call.operation, call.key],
    )
    for (const met of [
      await once.transaction(call, async () => 1),
      await once.execute(call, async () => 1),
      await once.run(payWith(makeTill(), { name: call.operation }), {
        account: call.account,
        key: call.key,
        input: { amount: 5 },
      }),
    ]) {
      if (met.outcome !== 'in_progress') throw new Error(`It met ${met.outcome}.`)
      expect(met.retryAfterMs).toBeGreaterThanOrEqual(1_400)
    }
    await holder.query('ROLLBACK')
  })
})

describe('what a client that met a doubt is told', () => {
  const lookAt = async (key: string, inMs: number) =>
    await shop.observer.query(
      `UPDATE onlyonce.records SET look_at = clock_timestamp() + $2 * interval '1 ms' WHERE key = $1`,
      [key, inMs],
    )

  test('when the next look comes, by the caller whose call it was and by every retry', async () => {
    const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'away' })
    const pay = payWith(till, { name: 'payments.told_when' })
    const once = shop.open({ reconcileAfterMs: [40_000, 90_000] })
    const call = payment()
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown', retryAfterMs: 40_000 + EVERY_MS })
    const retry = await once.run(pay, call)
    if (retry.outcome !== 'unknown') throw new Error(`It met ${retry.outcome}.`)
    expect(retry.retryAfterMs).toBeGreaterThan(20_000)
    expect(retry.retryAfterMs).toBeLessThanOrEqual(40_000 + EVERY_MS)
    await lookAt(call.key, 0)
    expect(await reconciler(once).runOnce()).toMatchObject({ done: 1 })
    const later = await once.run(pay, call)
    if (later.outcome !== 'unknown') throw new Error(`It met ${later.outcome}.`)
    expect(later.retryAfterMs).toBeGreaterThan(60_000)
  })

  test('over HTTP in seconds, and never more than an hour', async () => {
    const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'away' })
    const pay = payWith(till, { name: 'payments.told_seconds' })
    const once = shop.open({ reconcileAfterMs: [40_000] })
    const POST = idempotent(once, { account: () => 'acct_1', operation: pay })
    const key = randomUUID()
    const headers = { 'Idempotency-Key': key, 'Content-Type': 'application/json' }
    const send = () =>
      POST(new Request('http://localhost/', { method: 'POST', headers, body: '{"amount":5}' }))
    expect(secondsOf(await send())).toBe(41)
    await lookAt(key, 24 * 3_600_000)
    expect(secondsOf(await send())).toBe(3_600)
  })
})
