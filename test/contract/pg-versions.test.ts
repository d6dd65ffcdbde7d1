/** The oldest and the newest pg that are supported: the store uses parts of it that no version promises. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import pg from 'pg'
import { beforeAll, describe, expect, it, test } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { unsupported } from '../../src/store/postgres/wire.ts'
import { storeConformance } from '../../src/testing/store-conformance/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { postgresUnderTest } from '../setup/under-test.ts'
import { catchError, makeCall, SECRET } from './shop.ts'

const require = createRequire(import.meta.url)
const versionOf = (name: string): string =>
  JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version
const VERSIONS = [
  { version: versionOf('pg-oldest'), Pool: (require('pg-oldest') as typeof pg).Pool },
  { version: versionOf('pg'), Pool: pg.Pool },
]

let database: FreshDatabase
beforeAll(async () => {
  database = await freshDatabase()
})

function poolOf(Pool: typeof pg.Pool, max: number): pg.Pool {
  const pool = new Pool({ connectionString: database.url, max })
  pool.on('error', () => {})
  cleanUpLater(() => pool.end())
  return pool
}

test('they are the ends of the range that package.json names', () => {
  const { peerDependencies } = require('../../package.json')
  expect(`^${VERSIONS[0]!.version}`).toBe(peerDependencies.pg)
})

// The newest is what all other tests run with.
storeConformance({ describe, it }, `postgres with pg ${VERSIONS[0]!.version}`, async () =>
  postgresUnderTest(poolOf(VERSIONS[0]!.Pool, 8), { pooler: POOLER }),
)

describe.each(VERSIONS)('pg $version', ({ Pool }) => {
  const open = (pool: pg.Pool) => {
    const store = postgres({ pool, pooler: POOLER, schema: 'of_its_own' })
    const once = onlyonce({ store, secret: SECRET, background: false })
    cleanUpLater(() => once.close())
    return once
  }

  test('a connection that was given back inside a transaction is not worked on', async () => {
    const pool = poolOf(Pool, 2)
    const once = open(pool)
    await once.start()
    await pool.query('CREATE TABLE IF NOT EXISTS forgotten (note text)')
    const known = await pool.connect()
    const fresh = await pool.connect()
    await fresh.query("BEGIN; INSERT INTO forgotten VALUES ('uncommitted')")
    fresh.release()
    expect(await once.execute(makeCall(), async () => 1)).toMatchObject({ outcome: 'executed' })
    expect((await known.query('SELECT * FROM forgotten')).rows).toEqual([])
    known.release()
  })

  test('an end of the transaction inside a longer text is noticed', async () => {
    const work = async (tx: { query(text: string): Promise<unknown> }) => {
      await tx.query('SELECT 1')
      await tx.query('SELECT 2; COMMIT')
    }
    expect(await catchError(open(poolOf(Pool, 2)).transaction(makeCall(), work))).toMatchObject({
      code: 'transaction_ended_inside',
    })
  })

  test('a connection that breaks under the work is told, and the key runs again', async () => {
    const once = open(poolOf(Pool, 2))
    const call = makeCall()
    const cut = async (tx: { query(text: string): Promise<unknown> }) => {
      await tx.query('SELECT pg_terminate_backend(pg_backend_pid())')
    }
    expect(await catchError(once.transaction(call, cut))).toMatchObject({ retryable: true })
    expect(await once.transaction(call, async (tx) => (await tx.query('SELECT 1 AS n')).rows)).toMatchObject({
      outcome: 'executed',
    })
  })
})

test('a version without the parts that are used is refused, and one is named that has them', () => {
  const client = { connection: { stream: {} }, constructor: {}, readyForQuery: true }
  expect(unsupported(client as never)).toMatch(/install pg 8\.16/)
})
