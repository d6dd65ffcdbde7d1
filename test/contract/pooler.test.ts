import { beforeAll, expect, test } from 'vitest'
import { catchError, leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

// What works the same with and without a pooler is tested for both in the other files. Here: that nothing is
// left behind in a session, which behind a pooler belongs to somebody else at the next statement.

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

test('no named statement, no setting, no lock stays in the session', async () => {
  const pool = shop.database.pool({ max: 1 })
  const read = async () => ({
    statements: (await pool.query('SELECT name FROM pg_prepared_statements')).rows,
    settings: (await pool.query("SELECT name, setting FROM pg_settings WHERE source = 'session'")).rows,
    locks: (await pool.query("SELECT objid FROM pg_locks WHERE locktype = 'advisory'")).rows,
    channels: (await pool.query('SELECT pg_listening_channels()')).rows,
  })
  const before = await read()
  const once = shop.open({ pool, store: { pooler: 'transaction', lockWaitMaxMs: 1_234 } })
  for (const isolation of ['read committed', 'repeatable read', 'serializable'] as const) {
    for (const exclusive of [false, true]) {
      const call = { ...makeCall(), isolation, exclusive }
      for (let turn = 0; turn < 7; turn++) await once.transaction(call, (tx) => leaveEffect(tx, call.key))
      await catchError(once.transaction(makeCall(), async (tx) => void (await tx.query('SELECT 1 / 0'))))
      await once.explain(call)
    }
  }
  expect(await read()).toEqual(before)
})

test('every statement may go to another connection between transactions', async () => {
  // A pool that never gives the same connection twice is the harshest pooler there is.
  const pool = shop.database.pool({ max: 2, maxUses: 1 })
  const once = shop.open({ pool, store: { pooler: 'transaction' } })
  const call = makeCall()
  const failing = once.transaction(call, async (tx) => {
    await leaveEffect(tx, call.key)
    throw new Error('no')
  })
  await catchError(failing)
  expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
  expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('replayed')
  expect(await shop.countEffects(call.key)).toBe(1)
})
