import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { startEmbeddedPostgres } from '../src/store/embedded/index.ts'
import { cleanUpLater } from './setup/clean-up.ts'
import { freshDatabase } from './setup/database.ts'
import { waitUntil } from './setup/wait.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
/** Below the ports that systems give to connections by themselves. */
const PORTS = [15_000, 30_000] as const

/** The first block that is a whole service of a framework, and what the README says to install for it. */
function serviceOf(framework: string): { source: string; packages: string[] } {
  const blocks = [...README.matchAll(/```ts\n([\s\S]*?)```/g)].map((found) => found[1]!)
  const source = blocks.find((block) => block.includes(`from '${framework}'`) && block.includes('.listen('))!
  const install = [...README.matchAll(/npm i (onlyonce .*?)(?:`|$)/gm)].map((found) => found[1]!.split(' '))
  return { source, packages: install.find((packages) => packages.includes(framework))! }
}

/** What `npm i` leaves, with the sources of onlyonce in place of what is built of them. Nothing else can be imported. */
function install(packages: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-readme-'))
  cleanUpLater(async () => rmSync(folder, { recursive: true }))
  // Open to others, as folders usually are: started by root, the database runs as another user.
  chmodSync(folder, 0o755)
  for (const name of packages.filter((name) => name !== 'onlyonce')) link(folder, name)
  const library = join(folder, 'node_modules/onlyonce')
  mkdirSync(library, { recursive: true })
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const sources = JSON.stringify(exports).replaceAll(
    /\.\/dist\/(?:esm|cjs)\/([\w/-]+)(?:\.d\.ts|\.js)/g,
    './src/$1.ts',
  )
  writeFileSync(join(library, 'package.json'), `{"type":"module","exports":${sources}}`)
  symlinkSync(join(ROOT, 'src'), join(library, 'src'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  return folder
}

function link(folder: string, name: string): void {
  const path = join(folder, 'node_modules', name)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules', name), path)
}

/** Starts server.ts, and waits until it answers. */
async function start(folder: string, env: Readonly<Record<string, string>>): Promise<string> {
  const { DATABASE_URL: _, ONLYONCE_SECRET: __, ...rest } = process.env
  const PORT = `${randomInt(...PORTS)}`
  const service = spawn(process.execPath, ['--import', TSX, 'server.ts'], {
    cwd: folder,
    env: { ...rest, ...env, PORT },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  cleanUpLater(async () => {
    const gone = once(service, 'exit')
    if (service.kill('SIGKILL')) await gone
    // Its database outlives it, and is let go of by the next who starts it.
    if (existsSync(join(folder, 'data')))
      await (await startEmbeddedPostgres({ folder: join(folder, 'data') })).stop()
  })
  const address = `http://127.0.0.1:${PORT}`
  const answers = () =>
    fetch(address).then(
      () => true,
      () => service.exitCode !== null,
    )
  await waitUntil('the service answers', answers, 60_000)
  expect(service.exitCode).toBe(null)
  return address
}

async function order(address: string, key: string, item: string) {
  const response = await fetch(`${address}/orders`, {
    method: 'POST',
    headers: { 'idempotency-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ item }),
  })
  return {
    status: response.status,
    replayed: response.headers.get('idempotent-replayed'),
    text: await response.text(),
  }
}

describe('the service in the README', () => {
  const databases = {
    express: async () => ({}),
    fastify: async () => ({ DATABASE_URL: (await freshDatabase()).url }),
  }
  it.each(Object.entries(databases))('%s, pasted', { timeout: 120_000 }, async (framework, database) => {
    const { source, packages } = serviceOf(framework)
    const folder = install(packages)
    writeFileSync(join(folder, 'server.ts'), source)
    const address = await start(folder, await database())
    const first = await order(address, 'the-same-key', 'tea')
    expect(first).toMatchObject({ status: 201, replayed: null, text: expect.stringContaining('"id":"') })
    expect(await order(address, 'the-same-key', 'tea')).toEqual({ ...first, replayed: 'true' })
    expect((await order(address, 'the-same-key', 'cake')).status).toBe(422)
    expect((await order(address, 'another-key', 'tea')).text).not.toBe(first.text)
  })
})
