import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { cleanUpLater } from './setup/clean-up.ts'
import { doors, type Exported, examplesOf, publicExports } from './setup/public-docs.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CONTEXT = join(ROOT, 'test/setup/docs')

/** What a block takes as given beside what all do: by the adapter that it imports, or else by its page. */
const BY_IMPORT = {
  express: 'express',
  fastify: 'fastify',
  fetch: 'fetch',
  hono: 'fetch',
  koa: 'koa',
  node: 'fetch',
  nest: 'nest',
}
const BY_PAGE: Readonly<Record<string, string>> = {
  'docs/guides/payments/gateways.md': 'service',
  'docs/guides/clients.md': 'client',
  'docs/guides/keys.md': 'web',
  'docs/guides/payments/ledger.md': 'service',
  'docs/guides/rate-limits.md': 'fastify',
  'docs/guides/operating.md': 'operating',
  'docs/guides/payments/reconciliation.md': 'service',
  'docs/guides/testing.md': 'testing',
  'docs/guides/webhooks.md': 'web',
}

/** For examples: by the door that they are of. */
const BY_DOOR: Readonly<Record<string, string>> = {
  client: 'client',
  'client/keys': 'client',
  react: 'client',
  'rate-limits': 'fastify',
  operator: 'operating',
  orm: 'orm',
  testing: 'testing',
  webhooks: 'web',
}

interface Block {
  readonly page: string
  readonly line: number
  readonly source: string
}

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map((found) => ({
    page,
    line: text.slice(0, found.index).split('\n').length + 1,
    source: found[1]!,
  }))
}

function pages(): string[] {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, withFileTypes: true })
  const files = docs.filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
  return ['README.md', ...files.map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))]
}

/** The names that a file of context offers. */
function namesOf(context: string): string[] {
  const text = readFileSync(join(CONTEXT, `${context}.ts`), 'utf8')
  const declared = [...text.matchAll(/^export (?:declare const|interface) (\w+)/gm)].map((found) => found[1]!)
  const lists = [...text.matchAll(/^export \{([^}]*)\}/gm)].flatMap((found) => found[1]!.split(','))
  return [...declared, ...lists.map((name) => name.trim()).filter((name) => name !== '')]
}

/** The names that a block declares at its top, or imports. */
function ownNames(source: string): Set<string> {
  const heads = [
    ...source.matchAll(/^(?:import|(?:export )?(?:const|let|class|function)) ([^=;(]*?)(?: from|[=:(<]|$)/gm),
  ]
  return new Set(heads.flatMap((found) => found[1]!.match(/\w+/g) ?? []))
}

/** A module of an example in a doc comment: names of the library are imported where it calls them, or names them as types. */
function moduleOfExample(exported: Exported, source: string): string {
  const own = ownNames(source)
  // A name that a context offers too is the library's where it is called: `operation('…')` and `{ operation }` are two things.
  const offered = new Set(['examples', 'common'].flatMap(namesOf))
  const used = (name: string) =>
    new RegExp(offered.has(name) ? `(?<![.\\w])${name}(?=[(<])` : `(?<![.\\w'])${name}\\b(?!'|: )`).test(
      source,
    )
  const taken = new Map<string, Exported>()
  // What the door of the example exports comes first: several doors have an `idempotent`.
  const candidates = [...PUBLIC].sort((a, b) => rank(a) - rank(b))
  function rank({ door }: Exported): number {
    return door === exported.door ? 0 : door === 'onlyonce' ? 1 : 2
  }
  for (const one of candidates) {
    if (!own.has(one.name) && !taken.has(one.name) && used(one.name)) taken.set(one.name, one)
  }
  const imports = [...taken.values()].map(
    ({ name, door, kind }) => `import { ${kind === 'type' ? 'type ' : ''}${name} } from '${door}';`,
  )
  const ending = exported.door.slice('onlyonce/'.length)
  const special = BY_IMPORT[ending as keyof typeof BY_IMPORT] ?? BY_DOOR[ending]
  const given = givenTo(source, special, new Set([...own, ...taken.keys()]), ['examples', 'common'])
  return `${imports.join('')}${given}\n${source}\nexport {}\n`
}

/** Imports what a block takes as given: of the special context, and of the common one. */
function givenTo(
  source: string,
  special: string | undefined,
  known: ReadonlySet<string>,
  others: readonly string[] = ['common'],
): string {
  const taken = new Set<string>()
  const importFrom = (context: string) => {
    const names = namesOf(context).filter((name) => !known.has(name) && !taken.has(name))
    const used = names.filter((name) => new RegExp(`(?<![.\\w'])${name}\\b(?!['\\w])`).test(source))
    for (const name of used) taken.add(name)
    const list = used.map((name) =>
      /^[A-Z]\w+$/.test(name) && isType(context, name) ? `type ${name}` : name,
    )
    return used.length === 0 ? '' : `import { ${list.join(', ')} } from '${CONTEXT}/${context}.ts';`
  }
  return [...(special === undefined ? [] : [special]), ...others].map(importFrom).join('')
}

/** A module of the block: what it takes as given is imported on a line before it, so that the numbers of lines stay easy to read. */
function moduleOf({ page, source }: Block): string {
  const adapter = /from 'onlyonce\/(express|fastify|fetch|hono|koa|node|nest)'/.exec(source)?.[1]
  const special = BY_IMPORT[adapter as keyof typeof BY_IMPORT] ?? BY_PAGE[page]
  const given = givenTo(source, special, ownNames(source))
  return `${given}\n${source}\nexport {}\n`
}

function isType(context: string, name: string): boolean {
  return readFileSync(join(CONTEXT, `${context}.ts`), 'utf8').includes(`export interface ${name}`)
}

const PUBLIC = publicExports()

/** Examples of adapters are single lines out of an application. What they show stands in whole in docs/guides/frameworks, which is compiled. */
const FRAMEWORKS = /^onlyonce\/(?:express|fastify|fetch|hono|nest|node)$/

/** Each declaration once, by the first door that has it. */
const DECLARED = [
  ...new Map([...PUBLIC].reverse().map((one) => [`${one.file} ${one.name}`, one])).values(),
].reverse()

it('every value that is exported has an example', () => {
  const without = DECLARED.filter((one) => one.kind === 'value' && examplesOf(one).length === 0)
  expect(without.map(({ door, name }) => `${name} of ${door}`)).toEqual([])
})

it('every block of TypeScript in the README and in docs/, and every example in a public doc comment, compiles under strict', {
  timeout: 120_000,
}, () => {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-docs-'))
  cleanUpLater(async () => rmSync(folder, { recursive: true }))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  symlinkSync(join(ROOT, 'apps'), join(folder, 'apps'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  mkdirSync(join(folder, 'docs'))
  const blocks = pages().flatMap(blocksOf)
  expect(blocks.length).toBeGreaterThan(50)
  for (const block of blocks) {
    const name = `${block.page.replace(/^docs\//, '').replaceAll(/\W/g, '-')}-line-${block.line}`
    writeFileSync(join(folder, 'docs', `${name}.ts`), moduleOf(block))
  }
  mkdirSync(join(folder, 'examples'))
  for (const exported of DECLARED.filter(({ door }) => !FRAMEWORKS.test(door))) {
    for (const { line, source } of examplesOf(exported)) {
      const name = `${exported.file.replace(/^src\//, '').replaceAll(/\W/g, '-')}-${exported.name}-line-${line}`
      const ending = exported.door === 'onlyonce/react' ? 'tsx' : 'ts'
      writeFileSync(join(folder, 'examples', `${name}.${ending}`), moduleOfExample(exported, source))
    }
  }
  const unused = { noUnusedLocals: false, noUnusedParameters: false, rewriteRelativeImportExtensions: false }
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      ...unused,
      jsx: 'react-jsx',
      paths: Object.fromEntries(Object.entries(doors()).map(([door, file]) => [door, [file]])),
    },
    include: ['docs/*.ts', 'examples/*'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  expect(compile(folder)).toBe('')
})

/** What the compiler has to say. */
function compile(folder: string): string {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  try {
    return execFileSync(process.execPath, [tsc, '-p', folder], { cwd: folder, encoding: 'utf8' })
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}
