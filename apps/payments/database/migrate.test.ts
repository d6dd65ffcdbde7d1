import { cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { freshDatabase } from '../../../test/setup/database.ts'
import { migrate } from './migrate.ts'

async function folderOf(files: Readonly<Record<string, string>>): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'payments-migrations-'))
  cleanUpLater(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return pathToFileURL(`${folder}/`)
}

const FIRST = { '0001_first.sql': 'CREATE TABLE payments.first (n int);' }

describe('migrations of the service', () => {
  it('are applied once when twenty start at once, each with connections of its own', async () => {
    const database = await freshDatabase()
    const folder = await folderOf({
      ...FIRST,
      // Long enough for all the others to wait.
      '0002_second.sql': 'SELECT pg_sleep(0.3); CREATE TABLE payments.second (n int);',
    })
    const pools = Array.from({ length: 20 }, () => database.pool({ max: 1 }))
    await Promise.all(pools.map((pool) => migrate(pool, { folder })))
    const { rows } = await pools[0]!.query('SELECT version, name FROM payments.migrations ORDER BY version')
    expect(rows).toEqual([
      { version: 1, name: '0001_first.sql' },
      { version: 2, name: '0002_second.sql' },
    ])
    await Promise.all(pools.map((pool) => pool.end()))
  })

  it('are found done by one that waited, also where sessions are serializable', async () => {
    const database = await freshDatabase()
    const folder = await folderOf({
      '0001_first.sql': 'SELECT pg_sleep(0.2); CREATE TABLE payments.first ();',
    })
    const options = '-c default_transaction_isolation=serializable'
    const pools = Array.from({ length: 4 }, () => database.direct({ max: 1, options }))
    await Promise.all(pools.map((pool) => migrate(pool, { folder })))
  })

  it('of the shipped folder can be applied, and applied again', async () => {
    const pool = (await freshDatabase()).pool()
    await migrate(pool)
    await migrate(pool)
  })

  it('leave payments and refunds that share a gateway id as they are, and let no further one share it', async () => {
    const pool = (await freshDatabase()).pool()
    const folder = await folderOf({})
    const shipped = new URL('../migrations/', import.meta.url)
    for (const name of (await readdir(shipped)).filter((file) => file < '0008')) {
      await cp(new URL(name, shipped), new URL(name, folder))
    }
    await migrate(pool, { folder })
    const pay = (account: string, id: string, status = 'succeeded') =>
      pool.query(
        `INSERT INTO payments.payments (account, id, status, amount, currency, capture_method, payment_method, idempotency_key, gateway,
           gateway_id, captured)
         VALUES ($1, $2, $3, 5, 'EUR', 'automatic', 'pm', 'key', 'stripe', 'pi_1', CASE WHEN $3 = 'failed' THEN 0 ELSE 5 END)`,
        [account, id, status],
      )
    const refund = (id: string) =>
      pool.query(
        `INSERT INTO payments.refunds (account, payment, id, amount, status, idempotency_key, gateway_id)
         VALUES ('a:test', 'pay_1', $1, 1, 'succeeded', 'key', 're_1')`,
        [id],
      )
    for (const id of ['pay_1', 'pay_2', 'pay_3']) await pay('a:test', id)
    for (const id of ['ref_1', 'ref_2']) await refund(id)
    await migrate(pool)
    const { rows } = await pool.query(
      `SELECT id, shares_gateway_id AS shares FROM payments.payments
       UNION ALL SELECT id, shares_gateway_id FROM payments.refunds ORDER BY id`,
    )
    expect(rows.map(({ id, shares }) => [id, shares])).toEqual([
      ['pay_1', false],
      ['pay_2', true],
      ['pay_3', true],
      ['ref_1', false],
      ['ref_2', true],
    ])
    await expect(pay('b:test', 'pay_4')).rejects.toMatchObject({ constraint: 'payments_gateway_id' })
    await expect(refund('ref_3')).rejects.toMatchObject({ constraint: 'refunds_gateway_id' })
    // What failed has moved nothing, and the other mode is another processor.
    await pay('b:test', 'pay_5', 'failed')
    await pay('b:live', 'pay_6')
  })

  it('refuse a file that changed after it was applied, and say which', async () => {
    const pool = (await freshDatabase()).pool()
    const folder = await folderOf(FIRST)
    await migrate(pool, { folder })
    await writeFile(new URL('0001_first.sql', folder), 'CREATE TABLE payments.first (m int);')
    await expect(migrate(pool, { folder })).rejects.toMatchObject({
      code: 'schema_changed',
      message: expect.stringContaining('0001_first.sql is not what was applied'),
    })
  })

  it('refuse a file that comes before one that was applied already', async () => {
    const pool = (await freshDatabase()).pool()
    const folder = await folderOf({ '0003_third.sql': 'SELECT 1' })
    await migrate(pool, { folder })
    await writeFile(new URL('0002_second.sql', folder), 'SELECT 1')
    await expect(migrate(pool, { folder })).rejects.toThrow(/0002_second\.sql comes too late: 0003_third/)
  })

  it('leave nothing behind when one of them fails', async () => {
    const pool = (await freshDatabase()).pool({ max: 1 })
    const folder = await folderOf({ ...FIRST, '0002_second.sql': 'SELECT 1 / 0;' })
    await expect(migrate(pool, { folder })).rejects.toMatchObject({ code: '22012' })
    const { rows } = await pool.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'payments'`)
    expect(rows).toEqual([])
  })

  it('go on with the ledger that the service kept before, which had one column less', async () => {
    const pool = (await freshDatabase()).pool()
    const folder = await folderOf(FIRST)
    await migrate(pool, { folder })
    await pool.query('ALTER TABLE payments.migrations DROP COLUMN requires')
    await migrate(pool, { folder })
    await writeFile(new URL('0002_second.sql', folder), 'SELECT 1')
    await migrate(pool, { folder })
    const { rows } = await pool.query('SELECT version, requires FROM payments.migrations ORDER BY version')
    expect(rows).toEqual([
      { version: 1, requires: 1 },
      { version: 2, requires: 1 },
    ])
  })

  it('go on beside a newer version that has added one', async () => {
    const pool = (await freshDatabase()).pool()
    const newer = await folderOf({ ...FIRST, '0002_newer.sql': 'SELECT 1' })
    await migrate(pool, { folder: newer })
    const older = await folderOf({})
    await cp(fileURLToPath(new URL('0001_first.sql', newer)), fileURLToPath(new URL('0001_first.sql', older)))
    await migrate(pool, { folder: older })
  })

  it.each([{ '1_first.sql': '' }, { '0001_First.sql': '' }, { '0001_a.sql': '', '0001_b.sql': '' }])(
    'refuse names that tell no order: %o',
    async (files) => {
      const pool = (await freshDatabase()).pool()
      await expect(migrate(pool, { folder: await folderOf(files) })).rejects.toThrow(/is misnamed/)
    },
  )
})
