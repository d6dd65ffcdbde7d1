import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { answerRows } from '../build/client-answers-table.ts'
import { ERRORS } from '../src/core/errors.ts'
import { LIMITS } from '../src/core/limits.ts'
import { POLICY_NAMES } from '../src/http/index.ts'
import { METRICS, prometheusName } from '../src/observe/metrics.ts'
import { OPTIONS } from '../src/onlyonce/door-options.ts'
import { EDGES } from '../src/record/index.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

it('docs/reference/errors.md has the table of src/core/errors.ts', () => {
  const rows = read('docs/reference/errors.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
  const expected = Object.entries(ERRORS).map(
    ([code, { status, retryable, executed, message, developer }]) => {
      const told = message.replaceAll('|', '\\|')
      const cells = [`\`${code}\``, status, retryable ? 'yes' : 'no', executed.replaceAll('_', ' '), told]
      return `| ${cells.join(' | ')} |${developer === undefined ? '' : ` ${developer}`} |`
    },
  )
  expect(rows).toEqual(expected)
})

it('docs/reference/problems.md has a section for every error, with the anchor that its type ends in', () => {
  const sections = read('docs/reference/problems.md').split(/^## /m).slice(1)
  const expected = Object.entries(ERRORS).map(([code, { status, retryable, executed, message }]) => {
    const told = `Status ${status}, ${retryable ? 'retryable' : 'not retryable'}, executed: \`${executed}\`. ${message}`
    return `${code}\n\n${told}`
  })
  expect(sections.map((section) => section.trim())).toEqual(expected)
})

it('docs/reference/http.md has every option of a route, and no other', () => {
  const told = [...read('docs/reference/http.md').matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
  expect(told).toEqual(Object.keys(POLICY_NAMES))
})

it('docs/guides/clients.md has the table of answers', () => {
  const rows = read('docs/guides/clients.md')
    .split('\n')
    .filter((line) => /^\| (?:waits|sends|stops)/.test(line))
  expect(rows).toEqual(answerRows())
})

it('docs/guides/clients.md has every option of the client with its default', () => {
  const source = read('src/client/options.ts')
  const membersOf = (name: string) => {
    const body = source.slice(source.indexOf(`export interface ${name} `)).split('\n}\n')[0]!
    const found = [...body.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*readonly (\w+)\?:/g)]
    return found.map(([, comment, option]) => [option, /@default (.*)/.exec(comment!)?.[1] ?? 'none'])
  }
  const ofClient = ['Hooks', 'Patience', 'ClientOptions'].flatMap(membersOf)
  const known = /const NAMES =\s*'([^']*)'/.exec(read('src/client/fetch.ts'))![1]
  expect(ofClient.map(([name]) => name).sort()).toEqual(known!.split(' '))
  const expected = [...ofClient, ...membersOf('CallOptions')]
  const told = [...read('docs/guides/clients.md').matchAll(/^\| `([a-z]\w+)` \| (.*?) \| /gm)].filter(
    ([, name]) => expected.some(([option]) => option === name),
  )
  const plain = (text = '') => text.replaceAll('`', '')
  expect(told.map(([, name, value]) => [name, plain(value)])).toEqual(
    expected.map(([name, value]) => [name, plain(value)]),
  )
})

it('docs/reference/state-machine.md draws the edges of src/record', () => {
  const drawn = [...read('docs/reference/state-machine.md').matchAll(/^ {2}(\w+) --> (\w+) : \S/gm)]
  const expected = Object.entries(EDGES).flatMap(([from, to]) => to.map((state) => `${from} -> ${state}`))
  expect(drawn.map(([, from, to]) => `${from} -> ${to}`)).toEqual(expected)
})

it('docs/reference/state-machine.md explains every state', () => {
  const rows = [...read('docs/reference/state-machine.md').matchAll(/^\| `(\w+)` \|/gm)].map(
    ([, state]) => state,
  )
  expect(rows).toEqual(Object.keys(EDGES))
})

it('docs/guides/testing.md names every crash point, and no other', () => {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  const texts = sources.map((file) => read(join('src', file)))
  const called = texts.flatMap((text) => [...text.matchAll(/crashPoint\('([^']+)'\)/gi)])
  // The points of a transaction with work in it, under the name of every script that runs one.
  const reached = texts.flatMap((text) => [...text.matchAll(/#reach\('([^']+)'\)/g)])
  const scripts = texts.flatMap((text) => [...text.matchAll(/const script = \{\s+name: '(\w+)'/g)])
  const listed = read('docs/guides/testing.md')
    .split('\n')
    .filter((line) => /^\| `\w+\.\w+\.\w+`/.test(line))
    .flatMap((line) => [...line.matchAll(/`(\w+\.\w+\.\w+)`/g)])
  const within = scripts.flatMap(([, name]) => reached.map(([, point]) => `${name}.${point}`))
  const names = (found: RegExpMatchArray[], more: string[] = []) =>
    [...new Set([...found.map((match) => match[1]), ...more])].sort()
  expect(names(listed)).toEqual(names(called, within))
})

it('docs/guides/observability.md has the table of metrics', () => {
  const rows = read('docs/guides/observability.md')
    .split('\n')
    .filter((line) => line.startsWith('| `api.'))
  const expected = Object.values(METRICS).map((metric) => {
    const labels = metric.labels.map((label) => `\`${label}\``).join(', ') || 'none'
    const names = `\`${metric.name}\` | \`${prometheusName(metric)}\``
    return `| ${names} | ${metric.kind.replaceAll('_', '-')} | ${labels} | ${metric.help} |`
  })
  expect(rows).toEqual(expected)
})

it('docs/guides/observability.md asks only for metrics that there are', () => {
  const names = new Set(Object.values(METRICS).map(prometheusName))
  const asked = [...read('docs/guides/observability.md').matchAll(/\bapi_idempotency_\w+(?=[[{) ]|$)/gm)].map(
    (found) => found[0].replace(/_bucket$/, ''),
  )
  expect(asked.length).toBeGreaterThan(5)
  expect(asked.filter((name) => !names.has(name))).toEqual([])
})

it('docs/guides/observability.md tells every attribute of a span', () => {
  const set = [...read('src/observe/opentelemetry.ts').matchAll(/'(onlyonce\.\w+)'/g)].map(([, name]) => name)
  const told = [...read('docs/guides/observability.md').matchAll(/`(onlyonce\.\w+)`/g)].map(
    ([, name]) => name,
  )
  expect([...new Set(told)].sort()).toEqual([...new Set(set)].sort())
})

it('README.md links to files that are in the package, and sends no reader to a placeholder', () => {
  const { repository, homepage, bugs, files } = JSON.parse(read('package.json'))
  const place = repository.url.replace(/^git\+|\.git$/g, '')
  expect([homepage, bugs.url]).toEqual([`${place}#readme`, `${place}/issues`])
  expect(read('CONTRIBUTING.md')).toContain(place)
  expect(read('README.md')).not.toContain(place)
  const links = [...read('README.md').matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!)
  const toFiles = links.filter((link) => !/^(?:https:|#)/.test(link)).map((link) => link.replace(/#.*/, ''))
  expect(toFiles.length).toBeGreaterThan(0)
  for (const file of toFiles) {
    expect(existsSync(join(ROOT, file)), file).toBe(true)
    expect(files, file).toContain(file.split('/')[0])
  }
})

it('docs/reference/options.md has every option of onlyonce() with the type that it has in the code, and its default', () => {
  const rows = read('docs/reference/options.md').matchAll(/^\| `(\w+)` \| `(.+?)` \| (.+?) \| (.+) \|$/gm)
  const told = [...rows].map(([, name, type, given]) => ({
    name,
    type: type!.replaceAll('\\|', '|'),
    given: given!,
  }))
  const [, declared = ''] = /interface OnlyonceOptions<Tx> \{\n([\s\S]*?)\n\}\n/.exec(
    read('src/onlyonce/door.ts'),
  )!
  const types = Object.fromEntries(
    [...declared.matchAll(/^ {2}readonly (\w+)\??: (.+)$/gm)].map(([, name, type]) => [name, type]),
  )
  expect(told.map(({ name, type }) => [name, type])).toEqual(
    Object.keys(OPTIONS).map((name) => [name, types[name]]),
  )
  const limits: Readonly<Record<string, unknown>> = LIMITS
  for (const { name, given } of told.filter(({ name }) => limits[name!] !== undefined))
    expect(`${name}: ${given.replace(/ \(.*/, '')}`).toBe(
      `${name}: ${JSON.stringify(limits[name!])?.replaceAll(',', ', ')}`,
    )
})
