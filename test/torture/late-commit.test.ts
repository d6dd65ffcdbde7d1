import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { freshDatabase } from '../setup/database.ts'
import { PLACES, POOLER } from '../setup/pooler.ts'
import { proxyTo } from '../setup/proxy.ts'

/** Longer than a look and a few tries take: whoever looks once sees nothing. */
const COMMIT_TAKES_S = 0.7

describe.each(PLACES)('a COMMIT that takes effect after its connection is gone %s', (place) => {
  for (const again of [false, true]) {
    it(`is waited for, ${again ? 'also over a retryable record' : 'with a new key'}`, async () => {
      const database = await freshDatabase()
      const direct = database.direct({ max: 4 })
      await direct.query('CREATE TABLE effects (key text NOT NULL)')
      await direct.query(`
        CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN PERFORM pg_sleep(${COMMIT_TAKES_S}); RETURN NULL; END $$`)
      await direct.query(`
        CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON effects
          DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`)
      const { proxy, url } = await proxyTo(database, { place })
      const pool = database.pool({ connectionString: url, max: 2 })
      const once = onlyonce({
        store: postgres({ pool, pooler: POOLER }),
        secret: 'a secret that all processes share.',
      })
      const call = { account: 'acct_1', operation: 'transfers.create', key: randomUUID(), input: 1 }
      if (again)
        await expect(once.transaction(call, () => Promise.reject(new Error('first')))).rejects.toThrow(
          'first',
        )

      proxy.setFault({ kind: 'cut_at_commit', when: 'after', serverCloses: 'at_once', times: 1 })
      let runs = 0
      const result = await once.transaction(call, async (tx) => {
        await tx.query('INSERT INTO effects (key) VALUES ($1)', [call.key])
        runs += 1
        return { runs }
      })
      expect(proxy.stats.commitsCut.after).toBe(1)
      expect(result).toEqual({ outcome: 'executed', value: { runs: 1 } })
      expect((await direct.query('SELECT count(*)::int AS n FROM effects')).rows).toEqual([{ n: 1 }])
      expect(runs).toBe(1)
    })
  }
})
