import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EMBEDDED, embedMigrations } from '../../build/embed-migrations.ts'
import { buildIn, type FaultyFile } from './build-in.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A copy of the project, in which faults are built in; with the packages of the original. */
export function copyProject(): string {
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

/** Runs something while the fault is in the copy. */
export async function withFault<T>(copy: string, mutant: FaultyFile, run: () => Promise<T>): Promise<T> {
  const path = join(copy, mutant.file)
  const sound = readFileSync(path, 'utf8')
  const write = (text: string) => {
    writeFileSync(path, text)
    // The library applies the migrations that are in its code.
    writeFileSync(join(copy, EMBEDDED), embedMigrations(copy))
  }
  if (mutant.edits.length > 0) write(buildIn(mutant, sound))
  try {
    return await run()
  } finally {
    write(sound)
  }
}
