import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { RULES } from './judge/judge.ts'
import { SCENARIOS } from './scenarios.ts'

const page = readFileSync(new URL('../docs/explanation/guarantees.md', import.meta.url), 'utf8')

test('the page of guarantees explains each rule of the judge', () => {
  const explained = [...page.matchAll(/^\| ([a-z ]+) \| [A-Z\d"].* \| `[a-z,]+` \|$/gm)].map(
    ([, rule]) => rule,
  )
  expect(explained).toEqual(Object.keys(RULES))
})

test('the page of guarantees tells the faults of each scenario, and names none that is not there', () => {
  const [, table = ''] = /\| scenario \| faults \|\n([\s\S]*?)\n\n/.exec(page) ?? []
  const told = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  )
  const names = SCENARIOS.map(({ name }) => name)
  expect(told).toEqual(names)
  const commands = [...page.matchAll(/--scenario (\w+)|\| `([a-z,]+)` \|$/gm)]
  const mentioned = commands.flatMap(([, one, several]) => (one ?? several!).split(','))
  expect(names).toEqual(expect.arrayContaining(mentioned))
})
