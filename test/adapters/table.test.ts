import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { TOPICS } from './cases/index.ts'
import { ADAPTERS } from './servers/all.ts'
import { notApplicable, resultsTable } from './table.ts'

const lines = readFileSync(new URL('../../docs/guides/frameworks.md', import.meta.url), 'utf8').split('\n')

it('docs/guides/frameworks.md has the results of every adapter', () => {
  expect(lines.filter((line) => line.startsWith('|'))).toEqual(resultsTable(ADAPTERS))
})

it('docs/guides/frameworks.md says what does not apply, and why', () => {
  expect(lines.filter((line) => line.startsWith('- ') && line.includes(' lacks '))).toEqual(
    notApplicable(ADAPTERS),
  )
})

it('no two cases of a topic have the same name', () => {
  for (const { cases } of TOPICS) {
    const names = cases.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  }
})
