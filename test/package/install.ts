/** What `npm pack` makes, installed beside the tools that the checks of it need. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PROJECTS = fileURLToPath(new URL('.', import.meta.url))

export interface Installed {
  /** Where the project is, with the package in its node_modules. */
  readonly folder: string
  readonly tarball: string
}

/** Builds and packs the package. */
export function pack(): string {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-pack-'))
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit' })
  const args = ['pack', '--silent', '--pack-destination', folder]
  const name = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return join(folder, name.trim().split('\n').at(-1)!)
}

/** A project of this folder in a place of its own, where nothing of the repository can be found by accident. */
export function install(project: string, tarball: string): Installed {
  const folder = installPackages(project)
  unpack(tarball, join(folder, 'node_modules', 'onlyonce'))
  return { folder, tarball }
}

/** The same, with nothing but the packages that it names. */
export function installPackages(project: string): string {
  const source = join(PROJECTS, project)
  const lock = readFileSync(join(source, 'package-lock.json'))
  const name = `onlyonce-${project}-${createHash('sha256').update(lock).digest('hex').slice(0, 12)}`
  const folder = join(tmpdir(), name)
  if (!existsSync(join(folder, 'node_modules'))) installOnce(source, folder)
  cpSync(source, folder, { recursive: true })
  return folder
}

/** The packages are kept for the next run; a run that was ended in the middle leaves nothing that looks whole. */
function installOnce(source: string, folder: string): void {
  const draft = mkdtempSync(join(tmpdir(), 'onlyonce-install-'))
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(source, file), join(draft, file))
  // Not `npm ci`: it wants the optional packages of all platforms in the lock file, and a registry may lack some of them.
  execFileSync('npm', ['install', '--no-save', '--silent', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: draft,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  mkdirSync(folder, { recursive: true })
  renameSync(join(draft, 'node_modules'), join(folder, 'node_modules'))
  rmSync(draft, { recursive: true })
}

/** The dependencies of the package are among those of each project. */
export function unpack(tarball: string, folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'])
}
