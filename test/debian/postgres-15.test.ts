/** What is not in npm: the PostgreSQL of Debian 12. Run by `npm run test:debian`, after `apt-get install postgresql-15`. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { storeConformance } from '../../src/testing/index.ts'
import { postgresUnderTest } from '../setup/under-test.ts'

const binaries = '/usr/lib/postgresql/15/bin'
let folder: string
let server: EmbeddedServer
let pool: pg.Pool

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'onlyonce-debian-'))
  server = await startEmbeddedPostgres({ folder, binaries })
  pool = new pg.Pool({ connectionString: server.url, max: 8 })
  pool.on('error', () => {})
})

afterAll(async () => {
  await pool.end()
  await server.stop()
  await rm(folder, { recursive: true })
})

storeConformance({ describe, it }, 'postgres on PostgreSQL 15', async () =>
  postgresUnderTest(pool, { schema: 'conformance' }),
)

describe('PostgreSQL 15', () => {
  it('is what answers', async () => {
    expect((await pool.query('SHOW server_version')).rows[0].server_version).toMatch(/^15\./)
  })

  it('keeps a protected transaction over a crash', async () => {
    await pool.query('CREATE TABLE effects (key text PRIMARY KEY)')
    const once = onlyonce({ store: postgres({ pool }), secret: 'a secret of more than thirty-two bytes.' })
    const call = { account: 'a', operation: 'orders.create', key: 'kept-over-a-crash', input: 1 }
    const work = async (tx: { query: (text: string, values: unknown[]) => Promise<unknown> }) => {
      await tx.query('INSERT INTO effects VALUES ($1)', [call.key])
      return 'done'
    }
    expect(await once.transaction(call, work)).toEqual({ outcome: 'executed', value: 'done' })
    await server.kill()
    await server.restart()
    expect(await once.transaction(call, work)).toEqual({ outcome: 'replayed', value: 'done' })
    expect((await pool.query('SELECT count(*)::int AS n FROM effects')).rows).toEqual([{ n: 1 }])
  })

  it('does not start on data of another major version, and says so', async () => {
    await server.stop()
    await expect(startEmbeddedPostgres({ folder })).rejects.toThrow(/initialized by PostgreSQL version 15/)
    server = await startEmbeddedPostgres({ folder, binaries })
  })
})
