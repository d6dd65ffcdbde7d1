/**
 * Copies docs/ beside the site's configuration and adds what the site needs to it: the README as the first page, the changelog, and a
 * reference made from the doc comments of every public subpath. Links that leave docs/ go to the repository.
 */
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application } from 'typedoc'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGES = fileURLToPath(new URL('pages', import.meta.url))
const { exports, repository } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
const SOURCE = repository.url.replace(/^git\+/, '').replace(/\.git$/, '/blob/main')

await rm(PAGES, { recursive: true, force: true })
await cp(join(ROOT, 'docs'), PAGES, { recursive: true })
await writeFile(join(PAGES, 'index.md'), await readFile(join(ROOT, 'README.md')))
await writeFile(join(PAGES, 'changelog.md'), await readFile(join(ROOT, 'CHANGELOG.md')))
for (const path of await readdir(PAGES, { recursive: true })) {
  if (!path.endsWith('.md')) continue
  const from = { 'index.md': 'README.md', 'changelog.md': 'CHANGELOG.md' }[path] ?? `docs/${path}`
  const text = await readFile(join(PAGES, path), 'utf8')
  await writeFile(join(PAGES, path), turnLinks(text, from, path))
}
await makeReference()

/** A link is written for its place in the repository: `from`. It is read at its place in the site: `to`. */
function turnLinks(text, from, to) {
  return text.replace(/\]\(([^)#\s:]+)(#[^)\s]*)?\)/g, (_, path, anchor = '') => {
    const target = posix.join(posix.dirname(from), path)
    const page = { 'README.md': 'index.md', 'CHANGELOG.md': 'changelog.md' }[target] ?? target
    if (page !== target) return `](${posix.relative(posix.dirname(to), page) || page}${anchor})`
    if (!target.startsWith('docs/')) return `](${SOURCE}/${target}${anchor})`
    const place = posix.relative(posix.dirname(to), target.slice('docs/'.length))
    return `](${place.startsWith('.') ? place : `./${place}`}${anchor})`
  })
}

/** One module for each subpath that can be imported. */
async function makeReference() {
  const entries = Object.entries(exports).filter(([, target]) => typeof target === 'object')
  const sourceOf = ({ import: { default: path } }) =>
    join(ROOT, path.replace('./dist/esm/', 'src/').replace(/\.js$/, '.ts'))
  // typedoc calls a module by its path below src/.
  const moduleOf = (path) => relative(join(ROOT, 'src'), path).replace(/(?:\/index)?\.ts$/, '')
  const names = new Map(
    entries.map(([subpath, target]) => [moduleOf(sourceOf(target)), posix.join('onlyonce', subpath)]),
  )
  const app = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: entries.map(([, target]) => sourceOf(target)),
    tsconfig: join(ROOT, 'tsconfig.json'),
    readme: 'none',
    router: 'module',
    excludePrivate: true,
    excludeInternal: true,
    disableSources: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    skipErrorChecking: true,
    logLevel: 'Error',
  })
  const project = await app.convert()
  if (project === undefined) throw new Error('The reference could not be made.')
  for (const module of project.children ?? []) module.name = names.get(module.name) ?? module.name
  const out = join(PAGES, 'reference', 'api')
  await mkdir(dirname(out), { recursive: true })
  await app.outputs.writeOutput({ name: 'markdown', path: out }, project)
  console.log(`${relative(ROOT, out)}: ${project.children?.length} subpaths`)
}
