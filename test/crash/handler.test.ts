import { describe, expect, it } from 'vitest'
import { runProgram } from '../../src/testing/crash-run.ts'
import { type CrashSite, crashEverywhere } from '../../src/testing/index.ts'
import { compiled } from '../setup/compiled.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'

const PROGRAM = compiled(new URL('../programs/crash-handler.ts', import.meta.url))
const POINTS = ['claim.before', 'claim.after', 'work.before', 'work.after', 'save.before', 'save.after'].map(
  (point) => `handler.${point}`,
)

const runOf = (site: CrashSite | null) => (site === null ? 'first' : `${site.point}-${site.occurrence}`)

async function expectHonesty(database: FreshDatabase, RUN: string): Promise<void> {
  const { ended, code, stderr } = await runProgram(
    { program: PROGRAM, env: { ...database.environment, RUN } },
    null,
  )
  expect({ ended, code, stderr }).toEqual({ ended: 'exited', code: 0, stderr: '' })
  const { rows } = await database.direct({ max: 1 }).query(
    `SELECT r.key, r.state, (SELECT count(*)::int FROM effects AS e WHERE e.key = r.key) AS effects
     FROM onlyonce.records AS r WHERE r.key LIKE '%' || $1`,
    [RUN],
  )
  expect(rows).toHaveLength(2)
  for (const { key, state, effects } of rows) {
    // What its author called rerunnable is finished, whatever it takes; anything else is never run twice.
    if (key.startsWith('rerunnable')) expect({ key, state }).toEqual({ key, state: 'completed' })
    else expect(state === 'completed' ? [1] : [0, 1]).toContain(effects)
    expect(['completed', 'unknown']).toContain(state)
  }
}

describe('a process killed anywhere in a handler', () => {
  it('leaves no key in progress, and runs nothing twice that may not', { timeout: 300_000 }, async () => {
    const database = await freshDatabase()
    await database.direct({ max: 1 }).query('CREATE TABLE effects (key text NOT NULL)')
    const { crashes } = await crashEverywhere({
      program: PROGRAM,
      points: POINTS,
      runEnv: (site) => ({ ...database.environment, RUN: runOf(site) }),
      afterEach: (site) => expectHonesty(database, runOf(site)),
    })
    console.log(`killed at ${crashes.length} places: ${crashes.map((site) => runOf(site)).join(', ')}`)
    expect(new Set(crashes.map(({ point }) => point))).toEqual(new Set(POINTS))
  })
})
