import { describe, expect, it } from 'vitest'
import { runProgram } from '../../src/testing/crash-run.ts'
import { type CrashSite, crashEverywhere } from '../../src/testing/index.ts'
import { compiled } from '../setup/compiled.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'

const PROGRAM = compiled(new URL('../programs/crash-relay.ts', import.meta.url))
const RELAY = ['route', 'take', 'publish', 'done', 'clean'].map((step) => `relay.${step}`)
const JOBS = ['take', 'work', 'done'].map((step) => `jobs.${step}`)
const POINTS = [...RELAY, ...JOBS].flatMap((step) => [`${step}.before`, `${step}.after`])

const runOf = (site: CrashSite | null) => (site === null ? 'first' : `${site.point}-${site.occurrence}`)

/** After the crash the same program runs to its end: everything was delivered at least once, and in order. */
async function expectDelivery(database: FreshDatabase, RUN: string): Promise<void> {
  const { ended, code, stderr } = await runProgram(
    { program: PROGRAM, env: { ...database.environment, RUN } },
    null,
  )
  expect({ ended, code, stderr }).toEqual({ ended: 'exited', code: 0, stderr: '' })
  const pool = database.direct({ max: 1 })
  for (const destination of ['ledger', 'search']) {
    const { rows } = await pool.query(
      `SELECT aggregate, array_agg(sequence ORDER BY first) AS sequences FROM (
         SELECT aggregate, sequence, min(n) AS first FROM deliveries
         WHERE account = $1 AND destination = $2 GROUP BY aggregate, sequence
       ) AS d GROUP BY aggregate ORDER BY aggregate`,
      [RUN, destination],
    )
    expect(rows).toEqual([0, 1, 2, 3, 4, 5].map((n) => ({ aggregate: `a:${n}`, sequences: [1, 2, 3, 4, 5] })))
  }
  const effects = await pool.query('SELECT DISTINCT n FROM effects WHERE account = $1 ORDER BY n', [RUN])
  expect(effects.rows.map(({ n }) => n)).toEqual([0, 1, 2, 3, 4])
}

describe('a process killed anywhere in a relay', () => {
  it('loses no event and no job, and no order', { timeout: 300_000 }, async () => {
    const database = await freshDatabase()
    const pool = database.direct({ max: 1 })
    await pool.query(
      `CREATE TABLE deliveries (n bigserial, destination text, account text, id text, aggregate text, sequence int)`,
    )
    await pool.query('CREATE TABLE effects (account text, n int)')
    const { crashes } = await crashEverywhere({
      program: PROGRAM,
      points: POINTS,
      // Jobs and destinations go on side by side, so how often a point is reached differs from run to run.
      occurrencesMax: 1,
      runEnv: (site) => ({ ...database.environment, RUN: runOf(site) }),
      afterEach: (site) => expectDelivery(database, runOf(site)),
    })
    console.log(`killed at ${crashes.length} places: ${crashes.map((site) => runOf(site)).join(', ')}`)
    expect(new Set(crashes.map(({ point }) => point))).toEqual(new Set(POINTS))
  })
})
