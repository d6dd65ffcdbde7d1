/**
 * npm run test:orms
 *
 * Installs the ORMs beside these tests, in the versions of package-lock.json, and runs every one of them on the transaction of a protected request. They are no workspace: `npm ci`
 * of the project would install 390 MB more.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const ROOT = join(HERE, '../..')
const MARK = join(HERE, 'node_modules/.onlyonce-installed')

/** Once for each state of what is to be installed. */
function install(): void {
  const files = ['package.json', 'package-lock.json', 'prisma/schema.prisma']
  const hash = createHash('sha256')
  for (const file of files) hash.update(readFileSync(join(HERE, file)))
  const wanted = hash.digest('hex')
  if (existsSync(MARK) && readFileSync(MARK, 'utf8') === wanted) return
  // Not `npm ci`: it wants the optional packages of all platforms in the lock file, and a registry may lack some of them.
  const quiet = ['--no-save', '--silent', '--ignore-scripts', '--no-audit', '--no-fund']
  execFileSync('npm', ['install', ...quiet], { cwd: HERE, stdio: ['ignore', 'ignore', 'inherit'] })
  // A service has one copy of pg, so that the library and the ORMs share it. MikroORM brings another one of its own.
  rmSync(join(HERE, 'node_modules/pg'), { recursive: true, force: true })
  generate()
  linkExamples()
  writeFileSync(MARK, wanted)
}

/** Prisma wants an engine for migrations, which is no package of npm. It is not used here, so any program may stand for it. */
function generate(): void {
  const env = { ...process.env, CHECKPOINT_DISABLE: '1', PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }
  execFileSync(process.execPath, ['node_modules/prisma/build/index.js', 'generate'], {
    cwd: HERE,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** The examples find the ORMs where the tests have them. */
function linkExamples(): void {
  const link = join(ROOT, 'examples/orms/node_modules')
  rmSync(link, { force: true })
  symlinkSync('../../test/orms/node_modules', link, 'dir')
}

install()
for (const args of [
  ['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'test/orms'],
  ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.orms.config.ts', ...process.argv.slice(2)],
]) {
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) process.exit(1)
}
