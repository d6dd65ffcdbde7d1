import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** The ORMs that `npm run test:orms` runs, as their files say it; they are not installed here. */
function stacks() {
  const versions = JSON.parse(read('test/orms/package.json')).dependencies
  const listed = [...read('test/orms/stacks.ts').matchAll(/^ {2}(\w+)Stack,$/gm)].map(([, file]) => file)
  return listed.map((file) => {
    const text = read(`test/orms/stacks/${file}.ts`)
    const entry = text.slice(text.indexOf(': Stack = {'))
    const member = (name: string) => new RegExp(`\\n {2}${name}:\\s+(['"])(.*)\\1,\\n`).exec(entry)![2]!
    return { text, name: member('name'), line: member('line'), packed: member('package'), versions }
  })
}

test('the table of ORMs has every one that is tested, with the line that the test runs and its version', () => {
  const table = read('docs/guides/orms.md').split('| stack |')[1]!.split('\n\n')[0]!.split('\n').slice(2)
  const rows = stacks().map(
    ({ name, line, packed, versions }) =>
      `| ${name} | yes | \`${line}\` | \`${packed}\` ${versions[packed]} |`,
  )
  expect(rows.length).toBeGreaterThan(5)
  expect(table).toEqual(rows)
})

test.each(stacks())('the line of $name stands in its test', ({ text, line }) => {
  const [begin] = line.split(' …')
  expect(text.slice(text.indexOf('on(tx, work)')).replace(/\s+/g, ' ')).toContain(begin)
})
