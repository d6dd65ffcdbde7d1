import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { freshDatabase } from '../setup/database.ts'
import { PLACES, POOLER } from '../setup/pooler.ts'
import { proxyTo } from '../setup/proxy.ts'
import { Witness } from './witness.ts'

/** Fewer behind a pooler, where two connections to the server serve all callers, and twice: there are two places. */
const CUTS = POOLER === 'none' ? 2_000 : 500
const CALLERS = 16
const SEED = 20_260

describe.each(PLACES)('a connection that is cut at COMMIT %s', (place) => {
  it(`is told the right outcome ${CUTS} times`, { timeout: 300_000 }, async () => {
    const database = await freshDatabase()
    const direct = database.direct({ max: 4 })
    await direct.query('CREATE TABLE effects (key text NOT NULL)')
    const { proxy, url } = await proxyTo(database, { place, seed: SEED })
    const pool = database.pool({ connectionString: url, max: CALLERS })
    const once = onlyonce({
      store: postgres({ pool, pooler: POOLER }),
      secret: 'a secret that all processes share.',
    })
    await once.start()
    const witness = new Witness(once)
    proxy.setFault({ kind: 'cut_at_commit', when: 'random', rate: 0.5 })
    const cuts = () => Object.values(proxy.stats.commitsCut).reduce((sum, n) => sum + n, 0)
    await Promise.all(
      Array.from({ length: CALLERS }, async () => {
        while (cuts() < CUTS) await witness.call()
      }),
    )
    proxy.setFault(null)
    const { before, after, within } = proxy.stats.commitsCut
    const counted = await witness.compare(direct)
    console.log(`cut before ${before}, within ${within}, after ${after}; told ${JSON.stringify(counted)}`)
    expect(before + after + within).toBeGreaterThanOrEqual(CUTS)
    expect(Math.min(before, after, within)).toBeGreaterThan(CUTS / 5)
    // The database was there all the time: nobody has to be left without an answer.
    expect(counted.unknown).toBe(0)
  })
})
