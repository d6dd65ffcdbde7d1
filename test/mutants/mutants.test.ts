import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { buildIn } from './build-in.ts'
import { MUTANTS } from './mutants.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

// Trying them takes minutes; that a change of the code has left one behind is told at once.
test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))('%s: can be built in', (_, mutant) => {
  const sound = readFileSync(join(ROOT, mutant.file), 'utf8')
  expect(buildIn(mutant, sound)).not.toBe(sound)
  for (const file of mutant.tests) expect([file, existsSync(join(ROOT, file))]).toEqual([file, true])
})

test('each has a name of its own', () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length)
})
