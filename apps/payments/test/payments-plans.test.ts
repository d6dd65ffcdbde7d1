/** How much is read of a large table: an account that has paid for years pays as fast as on its first day. */
import { beforeAll, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/setup/database.ts'
import { migrate } from '../database/migrate.ts'
import { firstIdAt } from '../ids.ts'
import { FIND_EARLIER, LIST_PAYMENTS, SETTLE_PAYMENT } from '../payments/sql.ts'

const ACCOUNT = 'acct_1:test'
const NEW = firstIdAt('pay', Date.now())
const MINUTE_MS = 60_000
const PAYMENTS = 20_000
let plan: (text: string, values: readonly unknown[]) => Promise<string>
let read: (text: string, values: readonly unknown[]) => Promise<number>

beforeAll(async () => {
  const pool = (await freshDatabase()).pool({ max: 1 })
  await migrate(pool)
  await pool.query(
    `INSERT INTO payments.payments (account, id, status, amount, currency, capture_method, payment_method, reference,
       idempotency_key, gateway, captured, created_at)
     SELECT $1, 'pay_' || lpad(to_hex($2::bigint - n * 600000), 12, '0') || '7', 'succeeded', 7, 'EUR', 'automatic', 'pm',
       'always-the-same', 'k', 'stripe', 7, to_timestamp($2::bigint / 1000 - n * 600)
     FROM generate_series(1, $3::bigint) AS n`,
    [ACCOUNT, Date.now(), PAYMENTS],
  )
  await pool.query(
    `INSERT INTO payments.payments (account, id, amount, currency, capture_method, payment_method, reference,
       idempotency_key, gateway) VALUES ($1, $2, 8, 'EUR', 'automatic', 'pm', 'always-the-same', 'k', 'stripe')`,
    [ACCOUNT, NEW],
  )
  await pool.query('ANALYZE payments.payments')
  plan = async (text, values) => {
    await pool.query('BEGIN')
    const { rows } = await pool.query(`EXPLAIN (ANALYZE, TIMING OFF) ${text}`, [...values])
    await pool.query('ROLLBACK')
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  }
  read = async (text, values) => {
    return [...(await plan(text, values)).matchAll(/Rows Removed by Filter: (\d+)/g)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    )
  }
})

it('a payment is compared with those of its intent, and not with all of its reference', async () => {
  const minutes = 25 * 60
  const first = firstIdAt('pay', Date.now() - 2 * minutes * MINUTE_MS)
  const values = [ACCOUNT, NEW, 'succeeded', 'pi_1', 8, 0, null, null, 'captured', minutes, first]
  expect(await read(SETTLE_PAYMENT, values)).toBeLessThan(10)
  const intent = [ACCOUNT, NEW, 'unique', 'always-the-same', 8, 'EUR', 'pm', 'refuse', minutes, 200]
  expect(await read(FIND_EARLIER, intent)).toBeLessThan(10)
})

it('a list of a time reads what is near that time', async () => {
  const at = Date.now() - 90 * 24 * 60 * MINUTE_MS
  const day = 24 * 60 * MINUTE_MS
  const values = [null, new Date(at).toISOString(), null, 20, null, firstIdAt('pay', at + day)]
  expect(await read(LIST_PAYMENTS, [ACCOUNT, null, null, null, ...values])).toBeLessThan(200)
})

it.each<[string, unknown[]]>([
  ['nothing', [null, null, null]],
  ['a status that is common', ['succeeded', null, null]],
  ['a status that is rare', ['processing', null, null]],
  ['a reference that nobody has', [null, 'never-seen', null]],
  ['a reference that all have', [null, 'always-the-same', null]],
  ['metadata that nobody has', [null, null, '{"a":"b"}']],
])('a list by %s reads no table from end to end', async (_, filter) => {
  const found = await plan(LIST_PAYMENTS, [ACCOUNT, ...filter, null, null, null, 21, null, null])
  expect(found).not.toMatch(/Seq Scan on (?:payments|attempts)/)
  const removed = [...found.matchAll(/Rows Removed by Filter: (\d+)/g)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  )
  expect(removed, found).toBeLessThan(200)
})
