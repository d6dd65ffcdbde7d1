import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce, postgres } from '../../src/index.ts'
import { startFaultProxy } from '../../src/testing/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'

/** Longer than a look and a few tries take: whoever looks once sees nothing. */
const COMMIT_TAKES_S = 0.7

describe('a COMMIT that takes effect after its connection is gone', () => {
  for (const again of [false, true]) {
    it(`is waited for, ${again ? 'also over a retryable record' : 'with a new key'}`, async () => {
      const database = await freshDatabase()
      const direct = database.pool({ max: 4 })
      await direct.query('CREATE TABLE effects (key text NOT NULL)')
      await direct.query(`
        CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN PERFORM pg_sleep(${COMMIT_TAKES_S}); RETURN NULL; END $$`)
      await direct.query(`
        CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON effects
          DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`)
      const { hostname: host, port } = new URL(database.url)
      const proxy = await startFaultProxy({ target: { host, port: Number(port) } })
      const pool = new pg.Pool({ connectionString: proxy.url(database.url), max: 2 })
      pool.on('error', () => {})
      cleanUpLater(async () => {
        await pool.end()
        await proxy.close()
      })
      const once = onlyonce({ store: postgres({ pool }), secret: 'a secret that all processes share.' })
      const call = { account: 'acct_1', operation: 'transfers.create', key: randomUUID(), input: 1 }
      if (again)
        await expect(once.transaction(call, () => Promise.reject(new Error('first')))).rejects.toThrow(
          'first',
        )

      proxy.setFault({ kind: 'cut_at_commit', when: 'after', server_closes: 'at_once', times: 1 })
      let runs = 0
      const result = await once.transaction(call, async (tx) => {
        await tx.query('INSERT INTO effects (key) VALUES ($1)', [call.key])
        runs += 1
        return { runs }
      })
      expect(proxy.stats.commits_cut.after).toBe(1)
      expect(result).toEqual({ outcome: 'executed', value: { runs: 1 } })
      expect((await direct.query('SELECT count(*)::int AS n FROM effects')).rows).toEqual([{ n: 1 }])
      expect(runs).toBe(1)
    })
  }
})
