import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { proxyTo } from '../setup/proxy.ts'

const LOCK_WAIT_MS = 400
const IDLE_MS = 1_200
/** Tries that each wait for LOCK_WAIT_MS: enough for the bound of IDLE_MS, and for a slow machine. */
const TRIES_MAX = 12

const secret = 'a secret that all processes share.'
const bounds = { pooler: POOLER, lockWaitMaxMs: LOCK_WAIT_MS, idleInTransactionMaxMs: IDLE_MS }

describe('a winner that vanishes without closing its connection', () => {
  for (const exclusive of [true, false]) {
    it(`frees its key within the stated bound, ${exclusive ? 'exclusive' : 'with a row of its own locked'}`, async () => {
      const database = await freshDatabase()
      const direct = database.direct({ max: 4 })
      await direct.query('CREATE TABLE orders (number text PRIMARY KEY)')
      const { proxy, url } = await proxyTo(database)
      const far = database.pool({ connectionString: url, max: 2 })
      const call = { account: 'acct_1', operation: 'orders.create', key: randomUUID(), input: 1, exclusive }

      let tellInserted = () => {}
      const inserted = new Promise<void>((resolve) => {
        tellInserted = resolve
      })
      const vanished = onlyonce({
        store: postgres({ pool: far, ...bounds, transactionMaxMs: 20_000 }),
        secret,
      })
      const lost = vanished
        .transaction(call, async (tx) => {
          await tx.query('INSERT INTO orders VALUES ($1)', [call.key])
          tellInserted()
          await new Promise(() => {})
        })
        .catch((error) => error)
      await inserted
      proxy.setFault({ kind: 'black_hole' })

      const heir = onlyonce({ store: postgres({ pool: database.pool({ max: 4 }), ...bounds }), secret })
      const outcomes: string[] = []
      while (outcomes.at(-1) !== 'executed' && outcomes.length < TRIES_MAX) {
        const { outcome } = await heir.transaction(call, async (tx) => {
          await tx.query('INSERT INTO orders VALUES ($1)', [call.key])
        })
        outcomes.push(outcome)
        if (outcome === 'in_progress') await waited(direct, LOCK_WAIT_MS)
      }
      expect(outcomes.at(-1)).toBe('executed')
      expect(outcomes.length).toBeGreaterThan(1)
      expect(new Set(outcomes.slice(0, -1))).toEqual(new Set(['in_progress']))
      expect((await direct.query('SELECT * FROM orders')).rowCount).toBe(1)
      await proxy.close()
      expect(await lost).toMatchObject({ retryable: true })
    })
  }
})

/** Waits as long as a client is told to, by the clock of the database. */
async function waited(pool: pg.Pool, ms: number): Promise<void> {
  await pool.query('SELECT pg_sleep($1)', [ms / 1000])
}
