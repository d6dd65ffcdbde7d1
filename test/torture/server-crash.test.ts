import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { random } from '../../src/testing/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { startDurableServer } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { Witness } from './witness.ts'

const CRASHES = 10
const CALLERS = 16
const SEED = 7

function openPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => {})
  cleanUpLater(() => pool.end())
  return pool
}

/** Uses up transaction ids as fast as it can, so that ids lost in a crash are given out again. */
async function burnTransactionIds(pool: pg.Pool, running: () => boolean): Promise<void> {
  while (running()) {
    await pool.query('SELECT pg_current_xact_id()').catch(() => sleep(5))
  }
}

describe('PostgreSQL killed under load', () => {
  it(`leaves nobody with a wrong answer, ${CRASHES} times`, { timeout: 300_000 }, async () => {
    const server = await startDurableServer()
    const direct = openPool(server.serverUrl, 8)
    await direct.query('CREATE TABLE effects (key text NOT NULL)')
    const store = postgres({ pool: openPool(server.url, CALLERS), pooler: POOLER, settleMaxMs: 60_000 })
    const once = onlyonce({ store, secret: 'a secret that all processes share.' })
    await once.start()
    const witness = new Witness(once)
    let running = true
    const callers = Array.from({ length: CALLERS }, async () => {
      // While the server is away there is no point in asking as fast as one can.
      while (running) if ((await witness.call()) !== 'took effect') await sleep(5)
    })
    const others = Array.from({ length: 4 }, () => burnTransactionIds(direct, () => running))

    const { integer } = random(SEED)
    for (let crash = 0; crash < CRASHES; crash += 1) {
      const enough = witness.effects + 200 + integer(200)
      while (witness.effects < enough) await sleep(1)
      await server.kill()
      await server.restart()
    }
    running = false
    await Promise.all([...callers, ...others])

    const counted = await witness.compare(direct)
    console.log(`${CRASHES} crashes; told ${JSON.stringify(counted)}`)
    expect(counted['took effect']).toBeGreaterThan(CRASHES * 100)
    // The server came back every time, so the truth could be found out every time.
    expect(counted.unknown).toBe(0)
    // Whoever was told that nothing happened can send the same key again, and it takes effect.
    for (const [key, told] of witness.told) {
      if (told === 'nothing happened') expect(await witness.tell(key)).toBe('took effect')
    }
  })
})
