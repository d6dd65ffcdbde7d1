/** The payment service behind PgBouncer: its sessions have no settings of its own, so each read sets its bounds itself. */
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { LIMITS } from '../../apps/payments/limits.ts'
import { openSandbox } from '../../apps/payments/test/sandbox.ts'
import { openTestService, type TestService, testConfig } from '../../apps/payments/test/service.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'
import { SERVER_CONNECTIONS } from '../setup/pgbouncer.ts'

const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
let shop: TestService
/** Looks on from beside the pooler. */
let observer: pg.Pool

beforeAll(async () => {
  const { client } = await openSandbox()
  const database = await freshDatabase()
  observer = database.direct({ max: 1 })
  shop = await openTestService({
    database,
    gateways: { test: client },
    config: testConfig(database, { DATABASE_POOLER: 'transaction' }),
  })
})

/** Statements at work in the database that hold this text. */
async function countActive(text: string): Promise<number> {
  const { rows } = await observer.query(
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND state <> 'idle' AND position($1 IN query) > 0 AND pid <> pg_backend_pid()`,
    [text],
  )
  return rows[0].count
}

describe('the service', () => {
  it('takes payments, and reads what became of them', async () => {
    const paid = await shop.post('/v1/payments', { ...TEA, metadata: { order: '7' } })
    expect(paid.status, paid.text).toBe(201)
    const { id } = paid.body
    await shop.post(`/v1/payments/${id}/refunds`, { amount: 200 })
    expect((await shop.ask(`/v1/payments/${id}`)).body).toMatchObject({ id, amount_refunded: 200 })
    expect((await shop.ask('/v1/payments?metadata[order]=7')).body.data).toMatchObject([{ id }])
    expect((await shop.ask('/v1/balances')).body.data).toEqual([
      { currency: 'EUR', available: 4_000, pending: 0 },
    ])
  })
})

describe('a read', () => {
  it('is ended by the server when it takes too long, and the next one is served', async () => {
    const { reads } = shop.service
    const slow = reads.of('a').query('SELECT pg_sleep(60)')
    await expect(slow).rejects.toMatchObject({ code: '57014' })
    expect(await countActive('pg_sleep(60)')).toBe(0)
    expect((await reads.of('a').query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })

  it('writes nothing', async () => {
    const { reads } = shop.service
    await expect(reads.of('a').query('CREATE TABLE payments.mine ()')).rejects.toMatchObject({
      code: '25006',
    })
  })

  it('leaves its bounds to nobody else who is served over the same connection', async () => {
    const { reads, pool } = shop.service
    const bounds = `SELECT current_setting('statement_timeout') AS time, current_setting('transaction_read_only') AS read`
    for (let i = 0; i < 10; i += 1) {
      expect((await reads.of('a').query(bounds)).rows).toEqual([
        { time: `${LIMITS.readMaxMs / 1_000}s`, read: 'on' },
      ])
      for (let n = 0; n < SERVER_CONNECTIONS; n += 1) {
        expect((await pool.query(bounds)).rows).toEqual([{ time: '0', read: 'off' }])
      }
    }
  })

  it('is given up when the pooler has no connection for it, and the next one is served', async () => {
    const others = shop.database.pool({ max: SERVER_CONNECTIONS })
    const held: pg.PoolClient[] = []
    for (let i = 0; i < SERVER_CONNECTIONS; i += 1) {
      const client = await others.connect()
      cleanUpLater(async () => client.release(true))
      await client.query('BEGIN')
      held.push(client)
    }
    await expect(shop.service.reads.of('a').query('SELECT 1')).rejects.toThrow('Query read timeout')
    for (const client of held) await client.query('COMMIT')
    expect((await shop.ask('/v1/balances')).status).toBe(200)
  })
})
