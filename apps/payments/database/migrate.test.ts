import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
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
