import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce, postgres } from '../../src/index.ts'
import { startFaultProxy } from '../../src/testing/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'
import { Witness } from './witness.ts'

const CUTS = 2_000
const CALLERS = 16
const SEED = 20_260

describe('a connection that is cut at COMMIT', () => {
  it(`is told the right outcome ${CUTS} times`, { timeout: 300_000 }, async () => {
    const database = await freshDatabase()
    const direct = database.pool({ max: 4 })
    await direct.query('CREATE TABLE effects (key text NOT NULL)')
    const { hostname: host, port } = new URL(database.url)
    const proxy = await startFaultProxy({ target: { host, port: Number(port) }, seed: SEED })
    const pool = new pg.Pool({ connectionString: proxy.url(database.url), max: CALLERS })
    pool.on('error', () => {})
    cleanUpLater(async () => {
      await pool.end()
      await proxy.close()
    })

    const once = onlyonce({ store: postgres({ pool }), secret: 'a secret that all processes share.' })
    await once.start()
    const witness = new Witness(once)
    proxy.setFault({ kind: 'cut_at_commit', when: 'random', rate: 0.5 })
    const cuts = () => Object.values(proxy.stats.commits_cut).reduce((sum, n) => sum + n, 0)
    await Promise.all(
      Array.from({ length: CALLERS }, async () => {
        while (cuts() < CUTS) await witness.call()
      }),
    )
    proxy.setFault(null)
    const { before, after, within } = proxy.stats.commits_cut
    const counted = await witness.compare(direct)
    console.log(`cut before ${before}, within ${within}, after ${after}; told ${JSON.stringify(counted)}`)
    expect(before + after + within).toBeGreaterThanOrEqual(CUTS)
    expect(Math.min(before, after, within)).toBeGreaterThan(CUTS / 5)
    // The database was there all the time: nobody has to be left without an answer.
    expect(counted.unknown).toBe(0)
  })
})
