/** The package as users get it: what `npm pack` makes, in the tools that they use it with. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'
import { waitUntil } from '../setup/wait.ts'
import { type Installed, install, pack, unpack } from './install.ts'

const run = promisify(execFile)
const TIME = 240_000
const SECRET = 'a secret of at least thirty-two bytes'
const ANSWERED = { first: [201, null], second: [201, 'true'], same: true }

let installed: Installed
let env: NodeJS.ProcessEnv
const started: ChildProcess[] = []

beforeAll(async () => {
  installed = install('project', pack())
  const { url } = await freshDatabase()
  const { NODE_OPTIONS: _, VITEST: __, NODE_ENV: ___, ...rest } = process.env
  env = { ...rest, DATABASE_URL: url, ONLYONCE_SECRET: SECRET, NEXT_TELEMETRY_DISABLED: '1', CI: '1' }
}, TIME)

afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

/** A program of the project's own packages; what it says is in the error where it fails. */
async function tool(name: string, args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<string> {
  const file = join(installed.folder, 'node_modules', '.bin', name)
  const options = { cwd: installed.folder, env: { ...env, ...more }, timeout: TIME, maxBuffer: 1 << 26 }
  try {
    return (await run(file, args, options)).stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${name} ${args.join(' ')} failed:\n${stdout}\n${stderr}`)
  }
}

/** What a program of one file says as JSON, with a schema of its own, in a folder without packages. */
async function said(file: string, cwd: string): Promise<unknown> {
  const schema = `s_${randomUUID().slice(0, 8)}`
  const { stdout } = await run(process.execPath, [file], {
    cwd,
    env: { ...env, SCHEMA: schema },
    timeout: TIME,
  })
  return JSON.parse(stdout)
}

describe('types', () => {
  test('are found by every kind of resolution, for both builds (attw)', { timeout: TIME }, async () => {
    await tool('attw', [installed.tarball])
  })

  test('and manifest are as publint wants them', { timeout: TIME }, async () => {
    await tool('publint', ['--strict', join(installed.folder, 'node_modules', 'onlyonce')])
  })

  const KINDS = [
    { module: 'commonjs', moduleResolution: 'node10', type: 'commonjs' },
    { module: 'node16', moduleResolution: 'node16', type: 'commonjs' },
    { module: 'node16', moduleResolution: 'node16', type: 'module' },
    { module: 'esnext', moduleResolution: 'bundler', type: 'module' },
  ]
  test.each(KINDS)(
    'hold in strict mode with $moduleResolution, from $type',
    { timeout: TIME },
    async ({ module, moduleResolution, type }) => {
      writeFileSync(join(installed.folder, 'types', 'package.json'), JSON.stringify({ type }))
      await tool('tsc', ['-p', 'types', '--module', module, '--moduleResolution', moduleResolution])
    },
  )

  test('and code lead back to sources that are in the package', () => {
    const folder = join(installed.folder, 'node_modules', 'onlyonce', 'dist')
    for (const map of ['esm/index.js.map', 'esm/index.d.ts.map', 'cjs/store/postgres/store.js.map']) {
      const { sources } = JSON.parse(readFileSync(join(folder, map), 'utf8'))
      for (const source of sources) expect(existsSync(join(folder, map, '..', source))).toBe(true)
    }
  })
})

describe('a bundle', () => {
  /** Far from any node_modules. */
  async function runAlone(file: string): Promise<unknown> {
    const folder = mkdtempSync(join(tmpdir(), 'onlyonce-alone-'))
    cleanUpLater(async () => rmSync(folder, { recursive: true }))
    cpSync(file, join(folder, 'server.cjs'))
    return await said('server.cjs', folder)
  }

  test('of esbuild runs without any files beside it', { timeout: TIME }, async () => {
    const args = [
      'bundle/server.js',
      '--bundle',
      '--platform=node',
      '--external:pg-native',
      '--outfile=out/esbuild.cjs',
    ]
    await tool('esbuild', args)
    expect(await runAlone(join(installed.folder, 'out/esbuild.cjs'))).toEqual(ANSWERED)
  })

  test('of Rollup runs without any files beside it', { timeout: TIME }, async () => {
    await tool('rollup', ['--config', 'bundle/rollup.config.mjs'])
    expect(await runAlone(join(installed.folder, 'out/rollup.cjs'))).toEqual(ANSWERED)
  })

  test('of webpack runs without any files beside it', { timeout: TIME }, async () => {
    await run(process.execPath, ['bundle/webpack.mjs'], { cwd: installed.folder, env, timeout: TIME })
    expect(await runAlone(join(installed.folder, 'out/webpack.cjs'))).toEqual(ANSWERED)
  })
})

describe('the command line', () => {
  const program = (format: 'esm' | 'cjs') => {
    const folder = join(installed.folder, 'node_modules', 'onlyonce')
    const { bin, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return { file: join(folder, bin.onlyonce.replace('/esm/', `/${format}/`)), version }
  }

  test.each(['esm', 'cjs'] as const)(
    'runs as it is packed, from the build in %s',
    { timeout: TIME },
    async (format) => {
      const { file, version } = program(format)
      expect(readFileSync(file, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
      const said = await run(process.execPath, [file, '--version'], { cwd: installed.folder, timeout: TIME })
      expect(said.stdout).toBe(`${version}\n`)
      const stuck = await run(process.execPath, [file, 'stuck', '--json'], {
        cwd: installed.folder,
        env,
        timeout: TIME,
      })
      expect(JSON.parse(stuck.stdout)).toMatchObject({ parked: { count: 0 } })
    },
  )
})

describe('the client', () => {
  test('is there as ESM and as CommonJS, and each knows what the other has made', {
    timeout: TIME,
  }, async () => {
    expect(await said('client/both.cjs', installed.folder)).toEqual({
      two_copies: true,
      known: true,
      one_key: true,
      hooks: ['function', 'function'],
    })
  })
})

describe('Next.js', () => {
  /** Starts the server that was built, and sends it one request twice. */
  async function askTwice(): Promise<unknown> {
    const port = randomInt(20_000, 30_000)
    const file = join(installed.folder, 'node_modules', '.bin', 'next')
    const server = spawn(file, ['start', 'next', '-p', `${port}`, '-H', '127.0.0.1'], {
      cwd: installed.folder,
      env,
      stdio: 'ignore',
      detached: true,
    })
    cleanUpLater(async () => {
      process.kill(-server.pid!, 'SIGKILL')
    })
    const url = `http://127.0.0.1:${port}`
    await waitUntil('Next.js answers', () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    const key = randomUUID()
    const send = async () => {
      const response = await fetch(`${url}/orders`, { method: 'POST', headers: { 'idempotency-key': key } })
      return [response.status, response.headers.get('idempotent-replayed'), await response.text()]
    }
    const [first, second] = [await send(), await send()]
    return { first: first.slice(0, 2), second: second.slice(0, 2), same: first[2] === second[2] }
  }

  test('builds with Turbopack, and serves a protected route', { timeout: TIME }, async () => {
    await tool('next', ['build', 'next'])
    expect(await askTwice()).toEqual(ANSWERED)
  })

  test('builds with webpack, and serves a protected route', { timeout: TIME }, async () => {
    await tool('next', ['build', 'next', '--webpack'], { CHECK_TYPES: '0' })
    expect(await askTwice()).toEqual(ANSWERED)
  })
})

test('Jest tests a protected route in CommonJS, with ts-jest', { timeout: TIME }, async () => {
  await tool('jest', ['--config', 'jest/jest.config.js', '--rootDir', 'jest'])
})

test('both builds and a second copy work with objects of each other', { timeout: TIME }, async () => {
  const copy = join(installed.folder, 'copies', 'copy', 'node_modules', 'onlyonce')
  mkdirSync(copy, { recursive: true })
  unpack(installed.tarball, copy)
  expect(await said('copies/both.mjs', installed.folder)).toEqual({
    answers: [
      [201, null],
      [201, 'true'],
      [503, null],
      [503, null],
    ],
    refused: 2,
    run: { paid: true },
    fenced: 'held',
    known: true,
  })
})

test('it installs alone: no peer is brought along that is not used', { timeout: TIME }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-empty-'))
  cleanUpLater(async () => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  const args = ['install', '--silent', '--no-audit', '--no-fund', '--prefer-offline', installed.tarball]
  await run('npm', args, { cwd: folder, env, timeout: TIME })
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'))
  const { peerDependencies } = packages['node_modules/onlyonce']
  const brought = Object.keys(peerDependencies).filter((name) => `node_modules/${name}` in packages)
  expect(brought).toEqual([])
})

test('its root loads neither pg nor files, in both builds', { timeout: TIME }, async () => {
  const loads = (await said('root/loads.mjs', installed.folder)) as Record<'esm' | 'cjs', string[]>
  for (const names of [loads.esm, loads.cjs]) {
    expect(names).toContain('node:crypto')
    expect(
      names.filter((name) => /^(?:pg|(?:node:)?(?:fs|net|child_process|worker_threads)\b)/.test(name)),
    ).toEqual([])
  }
})
