/**
 * npm run test:runtimes
 *
 * The core of the contract on the other versions of Node.js that are supported, and one protected route on Bun and on Deno. Their
 * programs come from npm, for Linux on x64.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { openServer } from '../setup/cluster.ts'
import { install, installPackages, pack } from './install.ts'

/** What everything else stands on: the store, the three ways in, and replays. */
const CORE = [
  'src/store/postgres/conformance.test.ts',
  'test/contract/one-commit.test.ts',
  'test/contract/handler.test.ts',
  'test/contract/replay.test.ts',
  'test/contract/copies.test.ts',
  'src/client/fetch.test.ts',
  'src/client/keys/pending.test.ts',
  'test/client/sockets.test.ts',
]
const ANSWERED = '{"first":[201,null],"second":[201,"true"],"same":true}'

const packages = join(installPackages('runtimes'), 'node_modules')
for (const name of ['node-22', 'node-24']) {
  const program = join(packages, name, 'bin', 'node')
  console.log(`== ${spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout.trim()}`)
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--typecheck.enabled=false', ...CORE]
  if (spawnSync(program, args, { stdio: 'inherit' }).status !== 0) process.exit(1)
}

const { folder } = install('project', pack())
const server = await openServer()
try {
  smoke('Bun', join(packages, '@oven/bun-linux-x64/bin/bun'), ['run', 'bundle/server.js'])
  smoke('Deno', join(packages, '@deno/linux-x64-glibc/deno'), ['run', '--allow-all', 'bundle/server.js'])
  smokeClient('Bun', join(packages, '@oven/bun-linux-x64/bin/bun'), ['run', 'client/both.cjs'])
  smokeClient('Deno', join(packages, '@deno/linux-x64-glibc/deno'), ['run', '--allow-all', 'client/both.cjs'])
} finally {
  await server.close()
}

function smokeClient(name: string, program: string, args: readonly string[]): void {
  const ran = spawnSync(program, args, { cwd: folder, encoding: 'utf8', timeout: 60_000 })
  console.log(`== ${name}, the client: ${ran.stdout.trim()}`)
  const { known, one_key } = JSON.parse(ran.stdout) as { known?: boolean; one_key?: boolean }
  // A process that does not end by itself has left something open.
  if (!known || !one_key || ran.status !== 0)
    throw new Error(`${name} does not run the client:\n${ran.stderr}`)
}

function smoke(name: string, program: string, args: readonly string[]): void {
  const env = {
    ...process.env,
    DATABASE_URL: server.url,
    SCHEMA: `smoke_${name.toLowerCase()}`,
    ONLYONCE_SECRET: 'a secret of at least thirty-two bytes',
  }
  const ran = spawnSync(program, args, { cwd: folder, env, encoding: 'utf8', timeout: 60_000 })
  console.log(`== ${name}: ${ran.stdout.trim()}`)
  if (ran.stdout.trim() !== ANSWERED) throw new Error(`${name} answered otherwise:\n${ran.stderr}`)
}
