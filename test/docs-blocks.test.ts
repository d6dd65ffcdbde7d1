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

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CONTEXT = join(ROOT, 'test/setup/docs')

/** What a block takes as given beside what all do: by the adapter that it imports, or else by its page. */
const BY_IMPORT = {
  express: 'express',
  fastify: 'fastify',
  fetch: 'fetch',
  hono: 'fetch',
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

/** A module of the block: what it takes as given is imported on a line before it, so that the numbers of lines stay easy to read. */
function moduleOf({ page, source }: Block): string {
  const adapter = /from 'onlyonce\/(express|fastify|fetch|hono|node|nest)'/.exec(source)?.[1]
  const own = ownNames(source)
  const taken = new Set<string>()
  const importFrom = (context: string) => {
    const names = namesOf(context).filter((name) => !own.has(name) && !taken.has(name))
    const used = names.filter((name) => new RegExp(`(?<![.\\w'])${name}\\b(?!['\\w])`).test(source))
    for (const name of used) taken.add(name)
    const list = used.map((name) =>
      /^[A-Z]\w+$/.test(name) && isType(context, name) ? `type ${name}` : name,
    )
    return used.length === 0 ? '' : `import { ${list.join(', ')} } from '${CONTEXT}/${context}.ts';`
  }
  const special = BY_IMPORT[adapter as keyof typeof BY_IMPORT] ?? BY_PAGE[page]
  const given = `${special === undefined ? '' : importFrom(special)}${importFrom('common')}`
  return `${given}\n${source}\nexport {}\n`
}

function isType(context: string, name: string): boolean {
  return readFileSync(join(CONTEXT, `${context}.ts`), 'utf8').includes(`export interface ${name}`)
}

/** The entries of the package, as sources. */
function entries(): Record<string, string[]> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, unknown>
  }
  return Object.fromEntries(
    Object.entries(exports).flatMap(([entry, to]) => {
      const source = /dist\/esm\/([\w/-]+)\.d\.ts/.exec(JSON.stringify(to))?.[1]
      return source === undefined ? [] : [[`onlyonce${entry.slice(1)}`, [join(ROOT, `src/${source}.ts`)]]]
    }),
  )
}

it('every block of TypeScript in the README and in docs/ compiles under strict', { timeout: 120_000 }, () => {
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
  const unused = { noUnusedLocals: false, noUnusedParameters: false, rewriteRelativeImportExtensions: false }
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: { ...unused, paths: entries() },
    include: ['docs/*.ts'],
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
