/** How much is read for a page of a list: an account with many messages is shown twenty of them as fast as one with few. */
import { expect, it } from 'vitest'
import {
  boundRead,
  listDeliveriesTo,
  listMessages,
  listMessagesOf,
} from '../../src/store/postgres/sql/webhooks.ts'
import { openShop } from '../contract/shop.ts'

const account = 'acct_1'
const endpoint = '019a0000-0000-7000-8000-00000000000e'

async function openPlans(): Promise<(text: string, values: readonly unknown[]) => Promise<string>> {
  const shop = await openShop()
  await shop.open().start()
  const pool = shop.database.direct({ max: 1 })
  await pool.query(
    `INSERT INTO onlyonce.webhook_messages (account, id, type, body, created_at)
     SELECT CASE WHEN n % 4 = 0 THEN $1 ELSE 'acct_' || n % 50 END, ('019a0000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid,
       CASE WHEN n % 5000 = 0 THEN 'payment.rare' ELSE 'payment.succeeded' END, '{}', now() - n * interval '1 second'
     FROM generate_series(1, 20000) AS n`,
    [account],
  )
  await pool.query(
    `INSERT INTO onlyonce.webhook_endpoints (account, id, url) VALUES ($1, $2, 'https://a.example')`,
    [account, endpoint],
  )
  await pool.query(
    `INSERT INTO onlyonce.webhook_deliveries (account, endpoint, message, due_at)
     SELECT account, $2, id, now() FROM onlyonce.webhook_messages WHERE account = $1`,
    [account, endpoint],
  )
  await pool.query(
    'ANALYZE onlyonce.webhook_messages, onlyonce.webhook_deliveries, onlyonce.webhook_endpoints',
  )
  // As a prepared statement is planned when it has come often: without knowing its values.
  await pool.query('SET plan_cache_mode = force_generic_plan')
  let made = 0
  return async (text, values) => {
    const name = `plan_${++made}`
    await pool.query(`PREPARE ${name} AS ${text}`)
    const list = values.map((value) => (value === null ? 'NULL' : `'${value}'`)).join(', ')
    await pool.query('BEGIN')
    await pool.query(boundRead(), ['5000'])
    const { rows } = await pool.query(`EXPLAIN (ANALYZE, TIMING OFF) EXECUTE ${name}(${list})`)
    await pool.query('COMMIT')
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  }
}

it('no list reads a table from end to end, nor much more than it shows', async () => {
  const planOf = await openPlans()
  const plans = [
    await planOf(listMessagesOf('onlyonce'), [account, '{payment.rare}', null, null, null, null, 21]),
    await planOf(listMessagesOf('onlyonce'), [
      account,
      '{payment.rare,payment.succeeded,a}',
      null,
      null,
      null,
      null,
      21,
    ]),
    await planOf(listMessages('onlyonce'), [account, null, null, null, null, null, 21]),
    await planOf(listDeliveriesTo('onlyonce'), [account, null, null, 21, endpoint]),
  ]
  for (const plan of plans) {
    expect(plan).not.toMatch(/Seq Scan on webhook_/)
    const removed = [...plan.matchAll(/Rows Removed by Filter: (\d+)/g)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    )
    expect(removed, plan).toBeLessThan(200)
    const largest = Math.max(...[...plan.matchAll(/actual rows=(\d+)/g)].map(([, n]) => Number(n)))
    expect(largest, plan).toBeLessThan(200)
  }
})
