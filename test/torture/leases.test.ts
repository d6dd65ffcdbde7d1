import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { Talker } from '../setup/talker.ts'

const PROGRAM = new URL('../programs/handler.ts', import.meta.url)
const LEASE_MS = 600

async function scene(rerunnable: boolean) {
  const database = await freshDatabase()
  const pool = database.direct({ max: 4 })
  const once = onlyonce({
    store: postgres({ pool: database.pool({ max: 4 }), pooler: POOLER }),
    secret: 'a secret that all processes share.',
  })
  const call = { account: 'acct_1', operation: 'orders.create', key: randomUUID(), input: 1 }
  const env = {
    ...database.environment,
    KEY: call.key,
    LEASE_MS: `${LEASE_MS}`,
    RERUNNABLE: rerunnable ? 'yes' : 'no',
  }
  const owner = new Talker(PROGRAM, env)
  expect(await owner.hear()).toEqual({ working: 1 })
  const retry = () =>
    once.execute({ ...call, leaseMs: LEASE_MS, rerunnable }, async ({ fence }) => `by fence ${fence}`)
  return { pool, once, call, owner, retry }
}

/** Waits until the lease is over by the database's own clock, which alone counts. */
async function untilLeaseIsOver(pool: pg.Pool, key: string): Promise<void> {
  const { rows } = await pool.query(
    `SELECT pg_sleep_until(lease_until), state FROM onlyonce.records WHERE key = $1`,
    [key],
  )
  expect(rows).toHaveLength(1)
}

describe('a process that dies inside a handler', () => {
  for (const rerunnable of [true, false]) {
    it(`holds its key for its lease and no longer, ${rerunnable ? 'rerunnable' : 'not rerunnable'}`, async () => {
      const { pool, once, call, owner, retry } = await scene(rerunnable)
      await owner.kill()
      expect((await retry()).outcome).toBe('in_progress')
      await untilLeaseIsOver(pool, call.key)
      const result = await retry()
      if (rerunnable) expect(result).toEqual({ outcome: 'executed', value: 'by fence 2' })
      else expect(result).toMatchObject({ outcome: 'unknown' })
      expect((await once.explain(call)).state).toBe(rerunnable ? 'completed' : 'unknown')
    })
  }
})

describe('a process that is stopped for two leases and goes on', () => {
  for (const rerunnable of [true, false]) {
    const title = rerunnable
      ? 'changes nothing and is told so, rerunnable'
      : 'loses no good reply where nobody has decided meanwhile, not rerunnable'
    it(title, async () => {
      const { pool, once, call, owner, retry } = await scene(rerunnable)
      owner.send('SIGSTOP')
      await untilLeaseIsOver(pool, call.key)
      const result = await retry()
      expect(result.outcome).toBe(rerunnable ? 'executed' : 'unknown')
      await pool.query('SELECT pg_sleep($1)', [LEASE_MS / 1_000])
      owner.send('SIGCONT')
      owner.tell()
      expect(await owner.hear()).toEqual(
        rerunnable ? { code: 'lease_lost' } : { outcome: 'executed', value: 'by fence 1' },
      )
      expect((await once.explain(call)).state).toBe('completed')
      const kept = rerunnable ? 'by fence 2' : 'by fence 1'
      expect(await retry()).toEqual({ outcome: 'replayed', value: kept })
    })
  }
})
