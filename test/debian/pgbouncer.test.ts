/** PgBouncer of Debian, in transaction mode with two connections to the server. Run by `npm run test:debian`. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { onlyonce, postgres } from '../../src/index.ts'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { storeConformance } from '../../src/testing/index.ts'
import { postgresUnderTest } from '../setup/under-test.ts'
import { type PgBouncer, startPgBouncer } from './pgbouncer.ts'

const secret = 'a secret that all processes share.'
let folder: string
let server: EmbeddedServer
let bouncer: PgBouncer
let pool: pg.Pool

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'onlyonce-bounced-'))
  server = await startEmbeddedPostgres({ folder })
  bouncer = await startPgBouncer(server.url, 2)
  pool = new pg.Pool({ connectionString: bouncer.url, max: 16 })
  pool.on('error', () => {})
  await pool.query('CREATE TABLE effects (key text NOT NULL)')
})

afterAll(async () => {
  await pool.end()
  await bouncer.stop()
  await server.stop()
  await rm(folder, { recursive: true })
})

storeConformance({ describe, it }, 'postgres behind PgBouncer', async () =>
  postgresUnderTest(pool, { pooler: 'transaction' }),
)

describe('behind PgBouncer in transaction mode', () => {
  it('two hundred callers of fifty keys have fifty effects', async () => {
    const doors = [0, 1].map(() => onlyonce({ store: postgres({ pool, pooler: 'transaction' }), secret }))
    const keys = Array.from({ length: 50 }, () => randomUUID())
    const calls = keys.flatMap((key) =>
      [0, 1, 2, 3].map((n) =>
        doors[n % 2]!.transaction({ account: 'a', operation: 'o', key, input: 1 }, async (tx) => {
          await tx.query('INSERT INTO effects (key) VALUES ($1)', [key])
          return key
        }),
      ),
    )
    for (const result of await Promise.all(calls)) {
      if (result.outcome !== 'in_progress') expect(keys).toContain((result as { value: string }).value)
    }
    const { rows } = await pool.query('SELECT key, count(*)::int AS n FROM effects GROUP BY key')
    expect(rows.filter(({ key, n }) => keys.includes(key) && n === 1)).toHaveLength(50)
  })

  it('keeps its bounds on waiting to its own transactions', async () => {
    const once = onlyonce({
      store: postgres({ pool, pooler: 'transaction', lock_wait_max_ms: 1_234 }),
      secret,
    })
    const inside = await once.transaction({ account: 'a', operation: 'o', key: randomUUID() }, async (tx) => {
      return (await tx.query('SHOW lock_timeout')).rows[0]
    })
    expect(inside).toMatchObject({ value: { lock_timeout: '1234ms' } })
    for (let i = 0; i < 20; i += 1) {
      expect((await pool.query('SHOW lock_timeout')).rows[0]).toEqual({ lock_timeout: '0' })
    }
  })

  it('runs a handler', async () => {
    const once = onlyonce({ store: postgres({ pool, pooler: 'transaction' }), secret })
    const call = { account: 'a', operation: 'h', key: randomUUID() }
    expect(await once.handler(call, async () => 'done')).toEqual({ outcome: 'executed', value: 'done' })
    expect(await once.handler(call, async () => 'again')).toEqual({ outcome: 'replayed', value: 'done' })
  })

  it('takes effect once or says what to do when it was not told of the pooler', async () => {
    const once = onlyonce({ store: postgres({ pool }), secret })
    const keys = Array.from({ length: 120 }, () => randomUUID())
    const settled = await Promise.allSettled(
      keys.map((key) =>
        once.transaction({ account: 'a', operation: 'o', key, deadline_ms: 5_000 }, async (tx) => {
          await tx.query('INSERT INTO effects (key) VALUES ($1)', [key])
        }),
      ),
    )
    const { rows } = await pool.query('SELECT key, count(*)::int AS n FROM effects GROUP BY key')
    const effects = new Map(rows.map(({ key, n }) => [key, n]))
    // Whether a call meets a session that knows its statements is chance; either way the truth is told.
    settled.forEach((end, i) => {
      const told = end.status === 'fulfilled' ? end.value.outcome : end.reason.code
      expect(['executed', 'statement_not_prepared']).toContain(told)
      expect(effects.get(keys[i]) ?? 0).toBe(told === 'executed' ? 1 : 0)
    })
  })
})
