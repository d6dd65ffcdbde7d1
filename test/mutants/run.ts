/**
 * npm run mutants [-- part of a name] [--times 5] [--control] [--record] [--torture] [--share 1/3]
 *
 * Builds each fault of mutants.ts into a copy of the project and runs the tests that must notice. A fault that
 * nothing notices is a hole in the tests, and ends this with an error. The test that noticed a fault the last time is tried
 * first, alone (caught-by.json, written by `--record`); only where it passes all tests of the mutant are tried.
 * `--times` repeats the whole table: a fault that is noticed in some runs only is caught by luck. `--control` runs the same
 * tests without any fault: they have to pass. `--share 2/3` tries the second third of the table, in which each mutant
 * stands by its place. `--torture` tries the faults that the torture has to find, in place of those that tests have to.
 * Faults behind PgBouncer want Debian's package of it.
 */
import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openServer } from '../setup/cluster.ts'
import { buildIn } from './build-in.ts'
import { CAUGHT_BY, type Catch, record } from './caught-by.ts'
import { copyProject, ROOT, withFault } from './copy.ts'
import { MUTANTS, type Mutant } from './mutants.ts'
import { tryUnderTorture } from './run-torture.ts'
import { TORTURE_MUTANTS } from './torture-mutants.ts'

const RUN_MAX_MS = 300_000
const { values: given, positionals } = parseArgs({
  options: {
    times: { type: 'string', default: '1' },
    control: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    torture: { type: 'boolean', default: false },
    share: { type: 'string', default: '1/1' },
  },
  allowPositionals: true,
})
const times = Number(given.times)
if (!(Number.isInteger(times) && times >= 1)) throw new Error('--times is a whole number of at least 1.')
if (given.torture) {
  const chosen = TORTURE_MUTANTS.filter(({ name }) => name.includes(positionals[0] ?? ''))
  process.exit((await tryUnderTorture(chosen, { times, control: given.control })) ? 0 : 1)
}
const [share, shares] = given.share.split('/').map(Number) as [number, number]
if (!(share >= 1 && share <= shares)) throw new Error('--share is one of several, such as 2/3.')
const wanted = MUTANTS.filter(
  ({ name }, at) => name.includes(positionals[0] ?? '') && at % shares === share - 1,
)
// Before minutes are spent: does each still fit?
for (const mutant of wanted) buildIn(mutant, readFileSync(join(ROOT, mutant.file), 'utf8'))
const tried = given.control ? controls(wanted) : wanted
const waiting = Array.from({ length: times }, () => tried).flat()
const all = waiting.length
let wrong = 0
const caught = new Map<string, Catch>()
await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, workThrough))
console.log(`\n${all - wrong} of ${all} ${given.control ? 'controls passed' : 'mutants caught'}`)
if (given.record) record(caught)
process.exitCode = wrong === 0 && all > 0 ? 0 : 1

/** The tests of the table, each set of them once. */
function controls(mutants: readonly Mutant[]): readonly Mutant[] {
  const sets = new Map(mutants.map((mutant) => [`${mutant.tests.join()} ${mutant.only ?? ''}`, mutant]))
  return [...sets.values()].map((mutant) => ({ ...mutant, name: mutant.tests.join(), edits: [] }))
}

/** Where one mutant after the other is tried: a copy of the project, and a server that nobody else disturbs. */
interface Bench {
  readonly copy: string
  readonly database_url: string
}

async function workThrough(): Promise<void> {
  const copy = copyProject()
  const server = await openServer()
  try {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const began = performance.now()
      const bench = { copy, database_url: server.url }
      const failure = await withFault(copy, mutant, () =>
        given.control ? firstFailure(bench, mutant) : firstCatch(bench, mutant),
      )
      if (failure?.test !== undefined) caught.set(mutant.name, failure as Catch)
      const good = given.control ? failure === null : failure !== null
      if (!good) wrong += 1
      const verdict = given.control ? (good ? 'passed  ' : 'FAILED  ') : good ? 'caught  ' : 'SURVIVED'
      const seconds = ((performance.now() - began) / 1_000).toFixed(1).padStart(5)
      console.log(
        `${verdict} ${seconds} s  ${mutant.name}\n                  ${failure === null ? mutant.file : `${failure.file}: ${failure.test ?? 'could not be loaded'}`}`,
      )
    }
  } finally {
    await server.close()
    rmSync(copy, { recursive: true })
  }
}

/** A failure of a test, or of a whole file. */
interface Failure {
  readonly file: string
  readonly test?: string
}

/** The test that noticed the fault the last time, or else the first one that does. */
async function firstCatch(bench: Bench, mutant: Mutant): Promise<Failure | null> {
  const last = CAUGHT_BY[mutant.name]
  const alone = last && { ...mutant, tests: [last.file], only: `^${escaped(last.test)}$` }
  return (alone && (await firstFailure(bench, alone))) ?? (await firstFailure(bench, mutant))
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

async function firstFailure(
  { copy, database_url }: Bench,
  { name, tests, only, config }: Mutant,
): Promise<Failure | null> {
  const report = join(copy, 'mutant-report.json')
  rmSync(report, { force: true })
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs')
  const args = [
    vitest,
    'run',
    ...tests,
    '--bail=1',
    ...(config === undefined ? [] : [`--config=${config}`]),
    ...(only === undefined ? [] : [`--testNamePattern=${only}`]),
    '--reporter=json',
    `--outputFile=${report}`,
    '--typecheck.enabled=false',
    // Modules are found by a hash of their text, so one with a fault in it is never taken for the sound one.
    '--experimental.fsModuleCache=true',
    `--experimental.fsModuleCachePath=${join(copy, 'mutant-modules')}`,
  ]
  const env = { ...process.env, DATABASE_URL: database_url }
  const run = spawn(process.execPath, args, { cwd: copy, env, stdio: 'ignore', timeout: RUN_MAX_MS })
  const status = await new Promise((resolve, reject) => run.once('error', reject).once('exit', resolve))
  if (status === 0) return null
  const failure = failureIn(copy, report)
  // A run that fails without a test that fails has noticed nothing: its command may be wrong.
  if (failure === null) throw new Error(`${name}: no test failed, and vitest ended with ${status}.`)
  return failure
}

function failureIn(copy: string, report: string): Failure | null {
  try {
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
    const fileOf = (name: string) => name.replace(`${copy}/`, '')
    for (const { name, assertionResults } of testResults) {
      const failed = assertionResults.find(({ status }) => status === 'failed')
      if (failed !== undefined) return { file: fileOf(name), test: failed.fullName.trim() }
    }
    const broken = testResults.find(({ status }) => status === 'failed')
    return broken === undefined ? null : { file: fileOf(broken.name) }
  } catch {
    return null
  }
}

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}
