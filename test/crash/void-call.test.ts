import { beforeAll, expect, it } from 'vitest'
import { runProgram } from '../../src/testing/crash-run.ts'
import { type CrashSite, crashEverywhere } from '../../src/testing/index.ts'
import { type Gateway, startGateway } from '../gateway/client.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { compiled } from '../setup/compiled.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'

const PROGRAM = compiled(new URL('../programs/crash-void-call.ts', import.meta.url))
const around = (point: string) => [`operation.${point}.before`, `operation.${point}.after`]

/** Every place between the decision and the end of the payment. */
const POINTS = ['look', 'take_over', 'evidence', 'find', 'call', 'leave'].flatMap(around)
POINTS.push('step.commit.before', 'step.commit.sent', 'step.commit.after')

let database: FreshDatabase
let gateway: Gateway
beforeAll(async () => {
  database = await freshDatabase()
  await database.direct({ max: 1 }).query('CREATE TABLE effects (key text NOT NULL)')
  gateway = await startGateway()
  cleanUpLater(() => gateway.stop())
})

const runOf = (site: CrashSite | null) => (site === null ? 'first' : `${site.point}-${site.occurrence}`)
const environment = (RUN: string) => ({ ...database.environment, GATEWAY_URL: gateway.url, RUN })

/** The next process goes on, and the payment is made once, under the second key of its call. */
async function expectOnePayment(RUN: string): Promise<void> {
  const finish = { program: PROGRAM, env: { ...environment(RUN), MODE: 'finish' } }
  const { ended, code, stderr } = await runProgram(finish, null)
  expect({ ended, code, stderr }).toEqual({ ended: 'exited', code: 0, stderr: '' })
  const key = `void-${RUN}`
  const journal = await gateway.journal()
  expect(journal.filter((entry) => entry.kind === 'charge' && entry.reference === key)).toHaveLength(1)
  const pool = database.direct({ max: 1 })
  const effects = await pool.query('SELECT key FROM effects WHERE key LIKE $1 ORDER BY key', [`${key} %`])
  expect(effects.rows.map((row) => row.key)).toEqual([`${key} created`, `${key} settled`])
  const audit = await pool.query('SELECT action FROM onlyonce.audit WHERE key = $1', [key])
  expect(audit.rows).toEqual([{ action: 'void_call' }])
}

it('a process killed anywhere around a decision about a call makes one payment', {
  timeout: 600_000,
}, async () => {
  const { crashes } = await crashEverywhere({
    program: PROGRAM,
    points: POINTS,
    crashAt: POINTS,
    // The first call is that which is void by the end; all questions are about it, before and after the second.
    occurrencesMax: () => 2,
    runEnv: (site) => environment(runOf(site)),
    afterEach: (site) => expectOnePayment(runOf(site)),
  })
  console.log(`killed at ${crashes.length} places: ${crashes.map((site) => runOf(site)).join(', ')}`)
  expect(new Set(crashes.map(({ point }) => point))).toEqual(new Set(POINTS))
})
