import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { Talker } from '../setup/talker.ts'
import { LEAVING, leave } from './abandoned.ts'
import { ACCOUNT, createEffects, OLD_SECRET, untilLapsed } from './payments.ts'

const PROGRAM = new URL('../programs/complete.ts', import.meta.url)
const OPERATIONS = 10_000
const PROCESSES = 2

/** As many more as one that was really left, each under a key and an attempt of its own. */
async function multiply(pool: pg.Pool, key: string, count: number): Promise<void> {
  await pool.query(
    `INSERT INTO onlyonce.records
     SELECT copy.*
     FROM onlyonce.records AS r, generate_series(1, $2::int) AS n,
       jsonb_populate_record(r, jsonb_build_object('key', r.key || '-' || n, 'attempt_id', gen_random_uuid())) AS copy
     WHERE r.key = $1`,
    [key, count],
  )
  await pool.query('ANALYZE onlyonce.records')
}

describe(`${OPERATIONS} operations whose owners are gone`, () => {
  it(`are each completed once by ${PROCESSES} completers side by side`, { timeout: 240_000 }, async () => {
    const database = await freshDatabase()
    const pool = database.direct({ max: 2 })
    await createEffects(pool)
    const once = onlyonce({
      store: postgres({ pool: database.pool({ max: 4 }), pooler: POOLER }),
      secret: OLD_SECRET,
    })
    cleanUpLater(() => once.close({ maxMs: 1_000 }))
    const gone = leave(() => new Promise(() => {}))
    const call = { account: ACCOUNT, key: randomUUID(), input: null }
    const short = { leaseMs: 100, inProgressMaxMs: 100 }
    await expect(once.run(gone, { ...call, ...short })).rejects.toMatchObject({ code: 'lease_lost' })
    await untilLapsed(pool, call.key)
    await multiply(pool, call.key, OPERATIONS - 1)

    const completers = Array.from({ length: PROCESSES }, () => new Talker(PROGRAM, database.environment))
    for (const completer of completers) expect(await completer.hear()).toEqual({ ready: LEAVING })
    const begun = performance.now()
    for (const completer of completers) completer.tell()
    const said = await Promise.all(completers.map((completer) => completer.hear()))
    const seconds = (performance.now() - begun) / 1_000
    console.log(
      `${OPERATIONS} completed in ${seconds.toFixed(1)} s: ${Math.round(OPERATIONS / seconds)} a second; ` +
        said.map(({ done, batches }) => `${done} in ${batches} batches`).join(' and '),
    )

    expect(said.flatMap(({ failed }) => failed as string[])).toEqual([])
    expect(said.reduce((total, { done }) => total + Number(done), 0)).toBe(OPERATIONS)
    // Neither was idle beside the other.
    for (const { done } of said) expect(Number(done)).toBeGreaterThan(OPERATIONS / 10)
    const { rows } = await pool.query(
      `SELECT state, fence::int, points, reply_status, count(*)::int AS records, count(note)::int AS effects
       FROM onlyonce.records LEFT JOIN effects ON note = key GROUP BY 1, 2, 3, 4`,
    )
    expect(rows).toEqual([
      {
        state: 'completed',
        fence: 2,
        points: 2,
        reply_status: 201,
        records: OPERATIONS,
        effects: OPERATIONS,
      },
    ])
    const attempts = await pool.query('SELECT count(*)::int AS count FROM onlyonce.attempts')
    expect(attempts.rows[0].count).toBe(OPERATIONS)
    expect(await once.run(gone, call)).toEqual({
      outcome: 'replayed',
      status: 201,
      value: { key: call.key, number: 1 },
    })
  })
})
