import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { copyProject, ROOT, withFault } from './copy.ts'
import type { TortureMutant } from './torture-mutants.ts'

interface Options {
  readonly times: number
  /** Without any fault the judge must find nothing. */
  readonly control: boolean
}

/** One after the other: each run has the whole machine. Whether every one ended as it has to. */
export async function tryUnderTorture(
  mutants: readonly TortureMutant[],
  { times, control }: Options,
): Promise<boolean> {
  const copy = copyProject()
  let good = 0
  try {
    for (let turn = 0; turn < times; turn += 1) {
      for (const mutant of mutants) {
        const { name, rule } = mutant
        const built = control ? { ...mutant, edits: [] } : mutant
        const rules = await withFault(copy, built, () => violated(copy, mutant))
        const asWanted = control ? rules.size === 0 : rules.has(rule)
        if (asWanted) good += 1
        const verdict = asWanted ? (control ? 'passed' : 'caught') : control ? 'FAILED' : 'SURVIVED'
        console.log(
          `${verdict.padEnd(8)} ${name}\n         ${[...rules].join(', ') || 'no rule was violated'}`,
        )
      }
    }
  } finally {
    rmSync(copy, { recursive: true })
  }
  const all = mutants.length * times
  console.log(`\n${good} of ${all} ${control ? 'controls passed' : 'mutants caught by the torture'}`)
  return good === all && all > 0
}

/** The rules that one run violated. */
async function violated(copy: string, mutant: TortureMutant): Promise<ReadonlySet<string>> {
  const { scenario, faults, seconds, seed } = mutant
  const finding = join(copy, 'torture', '.findings', `${scenario}-${seed}.json`)
  rmSync(finding, { force: true })
  const args = [
    join(ROOT, 'node_modules', 'tsx', 'dist', 'cli.mjs'),
    join('torture', 'run.ts'),
    ...['--scenario', scenario, '--faults', faults.join(), '--seconds', `${seconds}`, '--seed', `${seed}`],
  ]
  const run = spawn(process.execPath, args, { cwd: copy, stdio: ['ignore', 'ignore', 'inherit'] })
  const status = await new Promise((resolve, reject) => run.once('error', reject).once('exit', resolve))
  if (status === 0) return new Set()
  // A run that could not be judged has found nothing.
  if (status !== 1 || !existsSync(finding)) throw new Error(`The torture ended with ${status}.`)
  const { violations } = JSON.parse(readFileSync(finding, 'utf8')) as {
    violations: readonly { readonly rule: string }[]
  }
  return new Set(violations.map(({ rule }) => rule))
}
