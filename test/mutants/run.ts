/**
 * npm run mutants [-- part of a name]
 *
 * Builds each fault of mutants.ts into a copy of the project and runs the tests that must notice. A fault that
 * nothing notices is a hole in the tests, and ends this with an error.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MUTANTS, type Mutant } from './mutants.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const wanted = MUTANTS.filter(({ name }) => name.includes(process.argv[2] ?? ''))
const copy = copyProject()
let survivors = 0
try {
  for (const mutant of wanted) {
    const caught_by = tryMutant(mutant)
    if (caught_by === null) survivors += 1
    console.log(
      `${caught_by === null ? 'SURVIVED' : 'caught  '}  ${mutant.name}\n            ${caught_by ?? mutant.file}`,
    )
  }
} finally {
  rmSync(copy, { recursive: true })
}
console.log(`\n${wanted.length - survivors} of ${wanted.length} mutants caught`)
process.exitCode = survivors === 0 && wanted.length > 0 ? 0 : 1

function copyProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-mutants-'))
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
  })
  for (const file of files.toString().split('\0').filter(Boolean)) {
    cpSync(join(ROOT, file), join(folder, file), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** The name of the first test that fails, or null when all pass. */
function tryMutant({ name, file, edits, tests }: Mutant): string | null {
  const path = join(copy, file)
  const sound = readFileSync(path, 'utf8')
  let text = sound
  for (const { from, to } of edits) {
    if (text.split(from).length !== 2) throw new Error(`${name}: not exactly once in ${file}: ${from}`)
    text = text.replace(from, () => to)
  }
  writeFileSync(path, text)
  try {
    return firstFailure(tests)
  } finally {
    writeFileSync(path, sound)
  }
}

function firstFailure(tests: readonly string[]): string | null {
  const report = join(copy, 'mutant-report.json')
  rmSync(report, { force: true })
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs')
  const args = [
    vitest,
    'run',
    ...tests,
    '--bail=1',
    '--reporter=json',
    `--outputFile=${report}`,
    '--typecheck.enabled=false',
  ]
  const { status } = spawnSync(process.execPath, args, { cwd: copy, stdio: 'ignore', timeout: 300_000 })
  if (status === 0) return null
  return nameOfFailure(report) ?? `the run itself: vitest ended with ${status}`
}

function nameOfFailure(report: string): string | null {
  try {
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
    for (const { name, assertionResults } of testResults) {
      const failed = assertionResults.find(({ status }) => status === 'failed')
      if (failed !== undefined) return `${name.replace(`${copy}/`, '')}: ${failed.fullName.trim()}`
    }
    const broken = testResults.find(({ status }) => status === 'failed')
    return broken === undefined ? null : `${dirname(broken.name)}: could not be loaded`
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
