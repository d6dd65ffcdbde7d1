import { describe, expect, it } from 'vitest'
import { runProgram } from '../../src/testing/crash-run.ts'
import { type CrashSite, crashEverywhere } from '../../src/testing/index.ts'
import { compiled } from '../setup/compiled.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { proxyTo } from '../setup/proxy.ts'

const PROGRAM = compiled(new URL('../programs/crash-transaction.ts', import.meta.url))
const NAMES = ['plain', 'failing', 'exclusive', 'within']

/** Every place in claim, work and commit that a process may die at. */
const POINTS = [
  'transaction.look.before',
  'transaction.look.after',
  'transaction.work.before',
  'transaction.work.after',
  'transaction.commit.before',
  'transaction.commit.sent',
  'transaction.commit.after',
  'transaction.failed.before',
  'transaction.failed.after',
  'within.claim.before',
  'within.work.before',
  'within.work.after',
  'within.complete.after',
]

const SETTLE_POINTS = ['transaction.settle.before', 'transaction.settle.after']

async function prepare(): Promise<FreshDatabase> {
  const database = await freshDatabase()
  await database.direct({ max: 2 }).query('CREATE TABLE effects (key text NOT NULL)')
  return database
}

const runOf = (site: CrashSite | null) => (site === null ? 'first' : `${site.point}-${site.occurrence}`)

/** After the crash the same program runs to its end, and every key has its effect once and a record. */
async function expectRecovery(database: FreshDatabase, RUN: string): Promise<void> {
  const { ended, code, stderr } = await runProgram(
    { program: PROGRAM, env: { ...database.environment, RUN } },
    null,
  )
  expect({ ended, code, stderr }).toEqual({ ended: 'exited', code: 0, stderr: '' })
  const pool = database.direct({ max: 1 })
  for (const name of NAMES) {
    const key = `${name}-${RUN}`
    const effects = await pool.query('SELECT count(*)::int AS n FROM effects WHERE key = $1', [key])
    const records = await pool.query('SELECT state FROM onlyonce.records WHERE key = $1', [key])
    expect({ key, n: effects.rows[0].n, records: records.rows }).toEqual({
      key,
      n: 1,
      records: [{ state: 'completed' }],
    })
  }
  const stuck = await pool.query(
    `SELECT key FROM onlyonce.records WHERE state NOT IN ('completed', 'retryable')`,
  )
  expect(stuck.rows).toEqual([])
}

describe('a process killed anywhere in a transaction', () => {
  it('leaves no key stuck and none lost', { timeout: 300_000 }, async () => {
    const database = await prepare()
    const { crashes } = await crashEverywhere({
      program: PROGRAM,
      points: POINTS,
      runEnv: (site) => ({ ...database.environment, RUN: runOf(site) }),
      afterEach: (site) => expectRecovery(database, runOf(site)),
    })
    console.log(`killed at ${crashes.length} places: ${crashes.map((site) => runOf(site)).join(', ')}`)
    expect(new Set(crashes.map(({ point }) => point))).toEqual(new Set(POINTS))
  })

  it('leaves no key stuck and none lost while a lost COMMIT is settled', { timeout: 300_000 }, async () => {
    const database = await prepare()
    const { proxy, url } = await proxyTo(database, { seed: 5 })
    for (const when of ['before', 'after', 'within'] as const) {
      const RUN = (site: CrashSite | null) => `${when}-${runOf(site)}`
      const { crashes } = await crashEverywhere({
        program: PROGRAM,
        points: SETTLE_POINTS,
        crashAt: SETTLE_POINTS,
        runEnv: (site) => {
          proxy.setFault({ kind: 'cut_at_commit', when, times: 1 })
          return { ...database.environment, DATABASE_URL: url, RUN: RUN(site) }
        },
        afterEach: (site) => expectRecovery(database, RUN(site)),
      })
      expect(crashes.map(({ point }) => point)).toEqual(SETTLE_POINTS)
    }
  })
})
