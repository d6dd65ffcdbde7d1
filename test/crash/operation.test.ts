import { beforeAll, describe, expect, it } from 'vitest'
import { runProgram } from '../../src/testing/crash-run.ts'
import { type CrashSite, crashEverywhere } from '../../src/testing/index.ts'
import { type Gateway, startGateway } from '../gateway/client.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { compiled } from '../setup/compiled.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { proxyTo } from '../setup/proxy.ts'

const PROGRAM = compiled(new URL('../programs/crash-operation.ts', import.meta.url))
const NAMES = ['plain', 'slow', 'early', 'saga', 'abandoned', 'doubtful']
const around = (name: string, ...points: string[]) =>
  points.flatMap((point) => [`${name}.${point}.before`, `${name}.${point}.after`])

/** Every place in claim, step, call, completion and workers that a process may die at. */
const POINTS = [
  ...around(
    'operation',
    'look',
    'claim',
    'take_over',
    'write',
    'extend',
    'keep',
    'evidence',
    'refuse_evidence',
    'find',
    'call',
    'leave',
  ),
  ...around('step', 'work', 'commit'),
  'step.commit.sent',
  ...around('completer', 'find'),
  ...around('reconciler', 'find'),
  ...around('reaper', 'reap'),
  ...around('relay', 'route', 'take', 'publish', 'done'),
]
const SETTLE_POINTS = around('operation', 'settle')

let database: FreshDatabase
let gateway: Gateway
beforeAll(async () => {
  database = await freshDatabase()
  await database.direct({ max: 1 }).query('CREATE TABLE effects (key text NOT NULL)')
  await database.direct({ max: 1 }).query('CREATE TABLE told (reference text NOT NULL)')
  gateway = await startGateway()
  cleanUpLater(() => gateway.stop())
})

const runOf = (site: CrashSite | null) => (site === null ? 'first' : `${site.point}-${site.occurrence}`)
const environment = (RUN: string) => ({ ...database.environment, GATEWAY_URL: gateway.url, RUN })

/** The clients never come back: what is left is for the workers. */
async function expectRecovery(RUN: string): Promise<void> {
  const work = { program: PROGRAM, env: { ...environment(RUN), MODE: 'work' } }
  const { ended, code, stderr } = await runProgram(work, null)
  expect({ ended, code, stderr }).toEqual({ ended: 'exited', code: 0, stderr: '' })
  const journal = await gateway.journal()
  const pool = database.direct({ max: 1 })
  const effects = await pool.query('SELECT key FROM effects WHERE key LIKE $1', [`%${RUN} %`])
  const times = (key: string) => effects.rows.filter((row) => row.key === key).length
  for (const name of NAMES) {
    const reference = `${name}-${RUN}`
    const records = await pool.query('SELECT state FROM onlyonce.records WHERE key = $1', [reference])
    const state = records.rows[0]?.state ?? 'none'
    const charges = journal.filter((entry) => entry.kind === 'charge' && entry.reference === reference)
    const refunds = journal.filter(
      (entry) => entry.kind === 'refund' && charges.some(({ id }) => id === entry.reference),
    )
    // Nothing is charged twice, and nothing is charged that no finished record knows of.
    const done = state === 'completed' ? 1 : 0
    expect({ reference, state, charges: charges.length }).toEqual({ reference, state, charges: done })
    expect(['completed', 'retryable', 'none']).toContain(state)
    expect(refunds).toHaveLength(name === 'saga' ? done : 0)
    if (name === 'saga') expect(times(`${reference} undone`)).toBe(done)
    else if (name !== 'early') expect(times(`${reference} settled`)).toBe(done)
    // Those outside hear of it, at least once.
    const told = await pool.query('SELECT FROM told WHERE reference = $1', [reference])
    const hasEvent = name !== 'saga' && name !== 'early'
    expect(told.rows.length > 0).toBe(hasEvent && done === 1)
    for (const step of ['created', 'noted']) expect(times(`${reference} ${step}`)).toBeLessThanOrEqual(1)
  }
}

describe('a process killed anywhere in an operation', () => {
  it('charges once or not at all, and the workers finish it', { timeout: 600_000 }, async () => {
    const { crashes } = await crashEverywhere({
      program: PROGRAM,
      points: POINTS,
      crashAt: POINTS,
      // A lease is renewed before a call when the machine is slow, too; and the relay has a test of its own.
      occurrencesMax: (point) => (/extend|relay/.test(point) ? 1 : 2),
      runEnv: (site) => environment(runOf(site)),
      afterEach: (site) => expectRecovery(runOf(site)),
    })
    console.log(`killed at ${crashes.length} places: ${crashes.map((site) => runOf(site)).join(', ')}`)
    expect(new Set(crashes.map(({ point }) => point))).toEqual(new Set(POINTS))
  })

  it('also while it finds out what became of a COMMIT', { timeout: 300_000 }, async () => {
    const { proxy, url } = await proxyTo(database, { seed: 5 })
    for (const when of ['before', 'after', 'within'] as const) {
      const RUN = (site: CrashSite | null) => `${when}-${runOf(site)}`
      const { crashes } = await crashEverywhere({
        program: PROGRAM,
        points: SETTLE_POINTS,
        crashAt: SETTLE_POINTS,
        runEnv: (site) => {
          proxy.setFault({ kind: 'cut_at_commit', when, times: 1 })
          return { ...environment(RUN(site)), DATABASE_URL: url }
        },
        afterEach: (site) => expectRecovery(RUN(site)),
      })
      expect(crashes.map(({ point }) => point)).toEqual(SETTLE_POINTS)
    }
  })
})
