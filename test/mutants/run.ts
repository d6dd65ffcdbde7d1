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
import { readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { EMBEDDED } from '../../build/embed-migrations.ts'
import { openServer } from '../setup/cluster.ts'
import { buildIn } from './build-in.ts'
import { CAUGHT_BY, type Catch, record } from './caught-by.ts'
import { copyProject, ROOT, withFault } from './copy.ts'
import { MUTANTS, type Mutant } from './mutants.ts'
import { tryUnderTorture } from './run-torture.ts'
import { type Failure, Tester } from './tester.ts'
import { TORTURE_MUTANTS } from './torture-mutants.ts'

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

async function workThrough(): Promise<void> {
  const copy = copyProject()
  const server = await openServer()
  const tester = new Tester(copy, server.url)
  try {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const began = performance.now()
      const failure = await tryOne(tester, copy, mutant).catch((error: unknown): Failure | null => {
        // It has noticed nothing: its command may be wrong.
        console.error(error)
        return given.control ? { file: 'no test failed, and not all were run' } : null
      })
      if (failure?.test !== undefined) caught.set(mutant.name, failure as Catch)
      const good = given.control ? failure === null : failure !== null
      if (!good) wrong += 1
      const verdict = given.control ? (good ? 'passed  ' : 'FAILED  ') : good ? 'caught  ' : 'SURVIVED'
      const seconds = ((performance.now() - began) / 1_000).toFixed(1).padStart(5)
      const where =
        failure === null ? mutant.file : `${failure.file}: ${failure.test ?? 'could not be loaded'}`
      console.log(`${verdict} ${seconds} s  ${mutant.name}\n                  ${where}`)
    }
  } finally {
    await tester.close()
    await server.close()
    rmSync(copy, { recursive: true })
  }
}

/** The test that noticed the fault the last time, or else the first one that does. */
async function tryOne(tester: Tester, copy: string, mutant: Mutant): Promise<Failure | null> {
  const { tests, only, config } = mutant
  // The template of databases is made when a process begins.
  const migrates = mutant.file.endsWith('.sql')
  if (migrates) await tester.close()
  const changed = [mutant.file, EMBEDDED]
  const last = given.control ? undefined : CAUGHT_BY[mutant.name]
  try {
    return await withFault(copy, mutant, async () => {
      const alone = last && { changed, tests: [last.file], only: `^${escaped(last.test)}$` }
      const again = alone && (await tester.firstFailure(config, alone))
      return again ?? (await tester.firstFailure(config, { changed, tests, ...(only && { only }) }))
    })
  } finally {
    if (migrates) await tester.close()
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
