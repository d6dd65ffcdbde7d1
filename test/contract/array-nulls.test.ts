import { beforeAll, expect, test } from 'vitest'
import { outbox, relay } from '../../src/outbox/index.ts'
import { makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

test('a role whose sessions have array_nulls off stores no text in place of what is not there', async () => {
  const { rows: who } = await shop.observer.query('SELECT current_database() AS database')
  await shop.observer.query(`ALTER DATABASE "${who[0].database}" SET array_nulls = off`)
  const once = shop.open({ pool: shop.database.direct({ max: 4 }) })
  const calls = Array.from({ length: 6 }, () => makeCall())
  const run = () => Promise.all(calls.map((call) => once.execute(call, async () => 1)))
  expect((await run()).map(({ outcome }) => outcome)).toEqual(Array(6).fill('executed'))
  expect((await run()).map(({ outcome }) => outcome)).toEqual(Array(6).fill('replayed'))
  const { rows } = await shop.observer.query(
    `SELECT count(*)::int AS count FROM onlyonce.records WHERE trace = 'NULL' OR reply_key_id = 'NULL'`,
  )
  expect(rows[0].count).toBe(0)
  const { emit, stage } = outbox(once)
  const account = 'acct_1'
  const staged = await once.transaction(makeCall(), async (tx) => {
    await emit(
      tx,
      ['a', 'b'].map((type) => ({ account, type })),
    )
    const jobs = [await stage(tx, { account, job: 'j' }), await stage(tx, { account, job: 'j' })]
    return jobs.map((job) => job.staged)
  })
  expect(staged).toMatchObject({ value: [true, true] })
  const got: (string | null)[] = []
  const seen: unknown[] = []
  const worker = relay(once, {
    destinations: {
      d: async (events) => {
        got.push(...events.map(({ aggregate }) => aggregate))
        throw new Error('no')
      },
    },
    jobs: {
      j: async ({ key }) => {
        seen.push(key)
        throw new Error('no')
      },
    },
  })
  await worker.runOnce()
  await worker.runOnce()
  expect(new Set(got)).toEqual(new Set([null]))
  expect(seen).toEqual([null, null])
  const held = await shop.observer.query(`SELECT aggregate FROM onlyonce.held`)
  expect(held.rows.every(({ aggregate }) => aggregate === null)).toBe(true)
})
