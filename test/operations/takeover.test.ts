import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { operation, reply } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { catchError, leaveEffect, makeGate, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { POOLER } from '../setup/pooler.ts'
import { abandonAt, makeTill, payment, payWith, SHORT } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

async function setRow(key: string, set: string): Promise<void> {
  await shop.observer.query(`UPDATE onlyonce.records SET ${set} WHERE key = $1`, [key])
}

async function rowOf(key: string) {
  const { rows } = await shop.observer.query('SELECT state, fence FROM onlyonce.records WHERE key = $1', [
    key,
  ])
  return rows[0]
}

describe('a takeover', () => {
  /** An operation whose owner is gone, and somebody who has seen it with its first fence. */
  async function abandon(name: string) {
    const { account, key, input } = payment()
    const pay = payWith(makeTill(), { name, between: abandonAt('created') })
    await catchError(shop.open().run(pay, { account, key, input, ...SHORT }))
    // Its last sign of life may still be on its way.
    await waitUntil('the lease is over', async () => {
      const { rows } = await shop.observer.query(
        "SELECT lease_until < clock_timestamp() - interval '100 ms' AS over FROM onlyonce.records WHERE key = $1",
        [key],
      )
      return rows[0].over
    })
    const { operations } = postgres({ pool: shop.database.pool({ max: 2 }), pooler: POOLER })
    const takeOver = (fence: number) =>
      operations!.takeOver({
        seen: { id: { account, operation: name, key }, fence, state: 'in_progress' },
        claimant: { kind: 'operation', attemptId: randomUUID(), owner: 'another', trace: null },
        leaseMs: 5_000,
        head: null,
        versions: ['1'],
      })
    return { key, takeOver }
  }

  test('of what was taken since it was seen changes nothing', async () => {
    const { key, takeOver } = await abandon('taken.since')
    // Another has taken it, and is gone too.
    await setRow(key, `fence = 2, lease_until = clock_timestamp() - interval '1 second'`)
    expect(await takeOver(1)).toBeNull()
    expect(await rowOf(key)).toEqual({ state: 'in_progress', fence: '2' })
    expect(await takeOver(2)).toMatchObject({ record: { fence: 3 } })
  })

  test('of what its owner lives for, after all, changes nothing', async () => {
    const { key, takeOver } = await abandon('taken.alive')
    await setRow(key, `lease_until = clock_timestamp() + interval '1 hour'`)
    expect(await takeOver(1)).toBeNull()
    expect(await rowOf(key)).toEqual({ state: 'in_progress', fence: '1' })
    await setRow(key, `lease_until = clock_timestamp() - interval '1 second'`)
    expect(await takeOver(1)).toMatchObject({ record: { fence: 2 } })
  })
})

test('a plain handler with the name of an operation is left alone by all who go on with operations', async () => {
  const ran: string[] = []
  const same = operation('taken.plain', async (op, _: unknown) => {
    ran.push(op.key)
    return reply(201, {})
  })
  const once = shop.open({ operations: [same] })
  const { account, key } = payment()
  const call = { account, key, operation: 'taken.plain', input: null }
  const gate = makeGate()
  const running = shop.open().execute(call, () => gate.pass())
  await gate.reached
  await setRow(key, `lease_until = clock_timestamp() - interval '1 hour'`)
  expect(await completer(once, { graceMs: 1 }).runOnce()).toMatchObject({ done: 0 })
  expect(await once.execute(call, async () => ran.push(key))).toMatchObject({ outcome: 'parked' })
  expect(await rowOf(key)).toEqual({ state: 'parked', fence: '1' })
  await setRow(key, `state = 'unknown', look_at = clock_timestamp() - interval '1 hour'`)
  expect(await reconciler(once).runOnce()).toMatchObject({ done: 0 })
  expect(await rowOf(key)).toEqual({ state: 'unknown', fence: '1' })
  expect(ran).toEqual([])
  gate.open()
  // Nobody has decided about it meanwhile, so the owner's late reply counts.
  expect(await running).toMatchObject({ outcome: 'executed' })
})

test('no signs of life wait for the row that a step of the owner holds', async () => {
  const gate = makeGate()
  const pay = operation('taken.quiet', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    return op.transaction('settled', async (tx) => {
      await leaveEffect(tx, `${op.key} settled`)
      await gate.pass()
      return reply(201, {})
    })
  })
  const { account, key } = payment()
  const running = shop.open().run(pay, { account, key, input: null, leaseMs: 300 })
  await gate.reached
  const waiters = new Set<string>()
  // Until the lease is over, two of them would have come.
  await waitUntil('the lease is over', async () => {
    const { rows } = await shop.observer.query(
      `SELECT lease_until <= clock_timestamp() AS over, array(
         SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
       ) AS waiting FROM onlyonce.records WHERE key = $1`,
      [key],
    )
    for (const query of rows[0].waiting) waiters.add(query)
    return rows[0].over
  })
  gate.open()
  expect(await running).toMatchObject({ outcome: 'executed' })
  expect([...waiters]).toEqual([])
})
