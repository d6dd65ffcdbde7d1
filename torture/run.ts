/**
 * npm run torture [-- --scenario links,commits] [--seconds 60] [--seed 42] [--faults server_kill,…] [--json]
 *
 * Runs the payment service as real processes under faults, and lets a judge that shares no code with it decide whether
 * every promise held. Exits with 0 if it did, 1 if not, 2 if it could not run.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { random } from 'onlyonce/testing'
import { readOptions } from './options.ts'
import { runScenario, type Summary } from './scenario.ts'
import { jsonOf, renderTable } from './table.ts'

const options = readOptions(process.argv.slice(2))
const say = (line: string) => process.stderr.write(`${line}\n`)
const summaries: Summary[] = []
const failures: { readonly name: string; readonly seed: number; readonly error: string }[] = []
for (const [index, scenario] of options.scenarios.entries()) {
  const drawn = random(options.seed)
    .fork(index)
    .integer(2 ** 31)
  const seed = options.scenarios.length === 1 ? options.seed : drawn
  try {
    const summary = await runScenario(scenario, { ...options, seed, say })
    summaries.push(summary)
    const { requests, charges, faults, violations } = summary
    say(`  ${requests} requests, ${charges} charges, ${faults} faults, ${violations.length} violations`)
    if (summary.violations.length > 0) keep(summary)
  } catch (error) {
    // The others are run all the same: each has a site of its own.
    failures.push({ name: scenario.name, seed, error: (error as Error).message })
    say(`${scenario.name} could not be run: ${(error as Error).message}`)
  }
}
console.log(renderTable(summaries))
for (const { name, error } of failures) console.log(`${name} could not be run: ${error}`)
if (options.json) {
  console.log(JSON.stringify({ scenarios: [...summaries.map(jsonOf), ...failures] }))
}
if (failures.length > 0) process.exit(2)
process.exit(summaries.every(({ violations }) => violations.length === 0) ? 0 : 1)

/** What was wrong is kept with its history, for whoever looks into it. */
function keep(summary: Summary): void {
  const folder = fileURLToPath(new URL('./.findings/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const file = `${folder}${summary.name}-${summary.seed}.json`
  const { documented: _, parkReasons: __, ...history } = summary.history
  writeFileSync(file, JSON.stringify({ violations: summary.violations, ...history }, null, 1))
  process.stderr.write(`The history of ${summary.name} is in ${file}\n`)
}
