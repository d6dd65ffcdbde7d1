import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

/**
 * Three folders below the root, as the source that looks for the migrations is; and within it, for packages. Every copy of the
 * project has its own.
 */
const FOLDER = fileURLToPath(new URL('../.compiled/programs/', import.meta.url))
/** A program of an app looks for its migrations from the folders of the app. */
const APPS = fileURLToPath(new URL('../../apps/', import.meta.url))
const known = new Map<string, string>()

/**
 * A program of ours as one file of JavaScript. Tests that start hundreds of processes spend most of their time in the loader
 * otherwise: one takes 0.2 s of processor time to start like this, and 0.75 s with tsx.
 *
 * @example
 * const PROGRAM = compiled(new URL('../programs/crash-handler.ts', import.meta.url))
 */
export function compiled(program: URL): string {
  const source = fileURLToPath(program)
  const before = known.get(source)
  if (before !== undefined) return before
  const { outputFiles } = buildSync({
    entryPoints: [source],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
  })
  const text = outputFiles[0]!.contents
  // Named by what is in it, and put there as a whole: others may compile the same, or run it, at the same time.
  const name = `${basename(source, '.ts')}-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
  const folder = folderFor(source)
  const file = join(folder, `${name}.mjs`)
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true })
    const draft = join(folder, `${name}.${process.pid}`)
    writeFileSync(draft, text)
    renameSync(draft, file)
  }
  known.set(source, file)
  return file
}

function folderFor(source: string): string {
  if (!source.startsWith(APPS)) return FOLDER
  const [app] = source.slice(APPS.length).split('/')
  return join(APPS, app!, '.compiled')
}
