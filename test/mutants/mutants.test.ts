import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { FAULTS } from '../../torture/faults.ts'
import { RULES } from '../../torture/judge/judge.ts'
import { SCENARIOS } from '../../torture/scenarios.ts'
import { buildIn } from './build-in.ts'
import { MUTANTS } from './mutants.ts'
import { TORTURE_MUTANTS } from './torture-mutants.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

// Trying them takes minutes; that a change of the code has left one behind is told at once.
test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))('%s: can be built in', (_, mutant) => {
  const sound = readFileSync(join(ROOT, mutant.file), 'utf8')
  expect(buildIn(mutant, sound)).not.toBe(sound)
  for (const file of mutant.tests) expect([file, existsSync(join(ROOT, file))]).toEqual([file, true])
})

test.each(TORTURE_MUTANTS.map((mutant) => [mutant.name, mutant] as const))('%s: fits', (_, mutant) => {
  const sound = readFileSync(join(ROOT, mutant.file), 'utf8')
  expect(buildIn(mutant, sound)).not.toBe(sound)
  expect(SCENARIOS.map(({ name }) => name)).toContain(mutant.scenario)
  expect(FAULTS.map(({ name }) => name)).toEqual(expect.arrayContaining([...mutant.faults]))
  expect(Object.keys(RULES)).toContain(mutant.rule)
})

test('each has a name of its own', () => {
  const names = [...MUTANTS, ...TORTURE_MUTANTS].map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})
