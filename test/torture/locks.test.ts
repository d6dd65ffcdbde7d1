import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { locks } from '../../src/locks/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { Talker } from '../setup/talker.ts'

const PROGRAM = new URL('../programs/lock.ts', import.meta.url)
const PROCESSES = 4
const ROUNDS = 25
const TTL_MS = 600

async function scene() {
  const database = await freshDatabase()
  const pool = database.direct({ max: 2 })
  await pool.query('CREATE TABLE counters (n int NOT NULL)')
  await pool.query('INSERT INTO counters VALUES (0)')
  const store = postgres({ pool: database.pool({ max: 2 }), pooler: POOLER })
  const once = onlyonce({ store, secret: 'a secret that all processes share.' })
  await once.start()
  const count = async () => (await pool.query('SELECT n FROM counters')).rows[0].n
  return { database, pool, once, count }
}

async function untilOver(pool: pg.Pool): Promise<void> {
  await pool.query(`SELECT pg_sleep_until(held_until) FROM onlyonce.locks`)
}

describe('4 processes that raise one counter under a lock', () => {
  it.each([
    ['that is kept alive', '5000', 'yes'],
    ['that runs out all the time', '2', 'no'],
  ])('lose no update, and never see a token twice, with a lock %s', async (_, TTL_MS, AUTO_EXTEND) => {
    const { database, count } = await scene()
    const env = { ...database.environment, ROUNDS: `${ROUNDS}`, TTL_MS, AUTO_EXTEND }
    const talkers = Array.from({ length: PROCESSES }, () => new Talker(PROGRAM, env))
    const said = await Promise.all(talkers.map((talker) => talker.hear()))
    const tokens = said.flatMap((one) => one.tokens as number[])
    const stale = said.reduce((sum, one) => sum + (one.stale as number), 0)
    expect(tokens.length + stale).toBe(PROCESSES * ROUNDS)
    expect(await count()).toBe(tokens.length)
    if (AUTO_EXTEND === 'yes') expect(stale).toBe(0)
    else expect(stale).toBeGreaterThan(0)
    expect(new Set(tokens).size).toBe(tokens.length)
    for (const one of said) {
      const own = one.tokens as number[]
      expect(own).toEqual([...own].sort((a, b) => a - b))
    }
  })
})

describe('a holder that is stopped for two ttls and goes on', () => {
  it('is told that the lock is lost, and its write is rejected', async () => {
    const { database, pool, once, count } = await scene()
    const late = new Talker(PROGRAM, { ...database.environment, TTL_MS: `${TTL_MS}` })
    expect(await late.hear()).toEqual({ token: 1 })
    late.send('SIGSTOP')
    await untilOver(pool)
    const lock = await locks(once).acquire('counter', { account: 'acct_1', ttlMs: 60_000 })
    expect(lock.token).toBe(2)
    await pool.query('SELECT pg_sleep($1)', [TTL_MS / 1_000])
    late.send('SIGCONT')
    late.tell()
    expect(await late.hear()).toEqual({ code: 'fence_stale', lost: true, released: false })
    expect(await count()).toBe(0)
    expect(await lock.release()).toBe(true)
    await once.close()
  })
})

describe('a holder that dies', () => {
  it('keeps others out for its ttl and no longer, and its token is not used again', async () => {
    const { database, pool, once } = await scene()
    const dying = new Talker(PROGRAM, { ...database.environment, TTL_MS: `${TTL_MS}` })
    expect(await dying.hear()).toEqual({ token: 1 })
    await dying.kill()
    const wanted = { account: 'acct_1', ttlMs: 60_000 }
    await expect(locks(once).acquire('counter', wanted)).rejects.toMatchObject({ code: 'lock_held' })
    await untilOver(pool)
    expect((await locks(once).acquire('counter', wanted)).token).toBe(2)
    await once.close()
  })
})
