import { describe, expect, it } from 'vitest'
import { runProgram } from '../../src/testing/crash-run.ts'
import { type CrashSite, crashEverywhere } from '../../src/testing/index.ts'
import { compiled } from '../setup/compiled.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'

const PROGRAM = compiled(new URL('../programs/crash-recover.ts', import.meta.url))
const STEPS = ['find', 'vanish', 'take', 'ask', 'write']
const POINTS = STEPS.flatMap((step) => [`recover.${step}.before`, `recover.${step}.after`])

const runOf = (site: CrashSite | null) => (site === null ? 'first' : `${site.point}-${site.occurrence}`)

async function expectSettled(database: FreshDatabase, RUN: string): Promise<void> {
  // Two at once, as after any crash: the one that comes second to a record has only wasted a question.
  const ends = await Promise.all(
    [1, 2].map(() => runProgram({ program: PROGRAM, env: { ...database.environment, RUN } }, null)),
  )
  for (const { ended, code, stderr } of ends) {
    expect({ ended, code, stderr }).toEqual({ ended: 'exited', code: 0, stderr: '' })
  }
  const { rows } = await database.direct({ max: 1 }).query(
    `SELECT r.operation, r.state, r.error_code, r.fence::int,
       (SELECT count(*)::int FROM effects AS e WHERE e.note = r.key) AS effects
     FROM onlyonce.records AS r WHERE r.key LIKE '%' || $1 ORDER BY r.operation`,
    [RUN],
  )
  expect(rows).toEqual([
    { operation: 'orders.found', state: 'completed', error_code: null, fence: 1, effects: 1 },
    { operation: 'orders.lost', state: 'parked', error_code: 'recover_exhausted', fence: 1, effects: 1 },
    { operation: 'orders.plain', state: 'parked', error_code: 'owner_vanished', fence: 1, effects: 1 },
    { operation: 'orders.void', state: 'retryable', error_code: 'recovered_void', fence: 1, effects: 1 },
  ])
}

describe('a process killed between any two of look, recover and write', () => {
  it('leaves nothing that another does not bring to the same end', { timeout: 600_000 }, async () => {
    const database = await freshDatabase()
    const direct = database.direct({ max: 1 })
    await direct.query('CREATE TABLE effects (key text PRIMARY KEY, note text NOT NULL)')
    await direct.query('CREATE TABLE asked (key text NOT NULL)')
    const { crashes } = await crashEverywhere({
      program: PROGRAM,
      points: POINTS,
      occurrencesMax: 2,
      runEnv: (site) => ({ ...database.environment, RUN: runOf(site) }),
      afterEach: (site) => expectSettled(database, runOf(site)),
    })
    console.log(`killed at ${crashes.length} places: ${crashes.map((site) => runOf(site)).join(', ')}`)
    expect(new Set(crashes.map(({ point }) => point))).toEqual(new Set(POINTS))
  })
})
