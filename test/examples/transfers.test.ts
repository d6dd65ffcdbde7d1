import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'

const PROGRAM = fileURLToPath(new URL('../../examples/transfers/server.ts', import.meta.url))
// By its address, because the service runs in a folder of its own, from where it could not be found by name.
const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href

let database: FreshDatabase
let folder: string
let service: ChildProcess
let address: string
let printedCurl: string

beforeAll(async () => {
  database = await freshDatabase()
  folder = await mkdtemp(join(tmpdir(), 'onlyonce-example-'))
  const { ONLYONCE_SECRET: _, ...env } = process.env
  service = spawn(process.execPath, ['--import', TSX, PROGRAM], {
    cwd: folder,
    env: { ...env, DATABASE_URL: database.url, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: service.stdout! })) {
    if (line.startsWith('Listening on ')) address = line.slice('Listening on '.length)
    if (line.includes('curl -i ')) printedCurl = line
    if (printedCurl !== undefined) break
  }
  if (printedCurl === undefined) throw new Error('The service ended before it printed its address.')
})

afterAll(async () => {
  if (service.exitCode === null && service.signalCode === null) {
    service.kill('SIGKILL')
    await once(service, 'exit')
  }
  await rm(folder, { recursive: true, force: true })
})

interface Seen {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

async function call(path: string, init: RequestInit = {}, apiKey = 'demo-acme'): Promise<Seen> {
  const headers = { Authorization: `Bearer ${apiKey}`, ...init.headers }
  const response = await fetch(address + path, { ...init, headers })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function post(body: unknown, key: string | null = randomUUID(), apiKey?: string): Promise<Seen> {
  const headers: Record<string, string> = key === null ? {} : { 'Idempotency-Key': key }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return call('/transfers', { method: 'POST', headers, body: text }, apiKey)
}

async function balances(apiKey?: string): Promise<Record<string, number>> {
  const rows = JSON.parse((await call('/accounts', {}, apiKey)).text) as { name: string; balance: string }[]
  return Object.fromEntries(rows.map(({ name, balance }) => [name, Number(balance)]))
}

const codeOf = ({ text }: Seen) => (JSON.parse(text) as { code: string }).code

test('what it prints works, and a retry gets the same bytes', async () => {
  const [, url, key, body] =
    /curl -i (\S+) .*'Idempotency-Key: (\S+)' .*-d '(.*)'/.exec(printedCurl)?.map(String) ?? []
  expect(url).toBe(`${address}/transfers`)
  const before = await balances()
  const first = await post(body, key)
  expect(first.status).toBe(201)
  expect(first.headers.get('Idempotent-Replayed')).toBeNull()
  expect(JSON.parse(first.text)).toMatchObject({ from: 'alice', to: 'bob', amount: 500 })

  const again = await post(body, key)
  expect(again.status).toBe(201)
  expect(again.headers.get('Idempotent-Replayed')).toBe('true')
  expect(again.text).toBe(first.text)
  expect(await balances()).toEqual({ alice: before.alice! - 500, bob: before.bob! + 500 })
})

test('a key with another amount is refused, and another customer has keys of their own', async () => {
  const key = randomUUID()
  const first = await post({ from: 'alice', to: 'bob', amount: 1 }, key)
  const reused = await post({ from: 'alice', to: 'bob', amount: 2 }, key)
  expect([reused.status, codeOf(reused)]).toEqual([422, 'key_reused'])
  const stranger = await post({ from: 'alice', to: 'bob', amount: 2 }, key, 'demo-globex')
  expect(stranger.status).toBe(201)
  expect(stranger.headers.get('Idempotent-Replayed')).toBeNull()
  const retry = await post({ amount: 1, to: 'bob', from: 'alice' }, key)
  expect([retry.status, retry.text]).toEqual([201, first.text])
})

test('too little money is a result that is stored and replayed', async () => {
  const key = randomUUID()
  const before = await balances()
  const input = { from: 'bob', to: 'alice', amount: before.bob! + 1 }
  const first = await post(input, key)
  expect([first.status, codeOf(first)]).toEqual([402, 'insufficient_funds'])
  // Now there would be enough; the answer to this key stays what it was.
  expect((await post({ from: 'alice', to: 'bob', amount: 10 })).status).toBe(201)
  const again = await post(input, key)
  expect([again.status, again.text]).toEqual([402, first.text])
  expect(again.headers.get('Idempotent-Replayed')).toBe('true')
})

test('an account that is missing is not held against the key', async () => {
  const key = randomUUID()
  const input = { from: 'alice', to: 'carol', amount: 1 }
  const first = await post(input, key)
  expect([first.status, codeOf(first)]).toEqual([404, 'account_not_found'])
  const again = await post(input, key)
  expect([again.status, again.headers.get('Idempotent-Replayed')]).toEqual([404, null])
  const { state, attempts } = JSON.parse((await call(`/explain?key=${key}`)).text)
  expect([state, attempts.length]).toEqual(['retryable', 2])
})

test('twenty duplicates at once move the money once', async () => {
  const key = randomUUID()
  const before = await balances()
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => post({ from: 'alice', to: 'bob', amount: 7 }, key)),
  )
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(answers.filter(({ headers }) => headers.get('Idempotent-Replayed') === null)).toHaveLength(1)
  expect(await balances()).toEqual({ alice: before.alice! - 7, bob: before.bob! + 7 })
})

test.each([
  ['no key', { from: 'alice', to: 'bob', amount: 1 }, null, 400, 'key_missing'],
  ['a key that is too short', { from: 'alice', to: 'bob', amount: 1 }, 'abc', 400, 'key_too_short'],
  ['malformed JSON', '{"from":', undefined, 400, 'json_malformed'],
  ['no object', [1], undefined, 400, 'transfer_invalid'],
  ['an unknown member', { from: 'alice', to: 'bob', amount: 1, fee: 1 }, undefined, 400, 'transfer_invalid'],
  ['no amount', { from: 'alice', to: 'bob' }, undefined, 400, 'transfer_invalid'],
  ['a negative amount', { from: 'alice', to: 'bob', amount: -1 }, undefined, 400, 'transfer_invalid'],
  ['half a cent', { from: 'alice', to: 'bob', amount: 0.5 }, undefined, 400, 'transfer_invalid'],
  ['an amount past 2^53', { from: 'alice', to: 'bob', amount: 2 ** 53 }, undefined, 400, 'transfer_invalid'],
  ['a transfer to itself', { from: 'bob', to: 'bob', amount: 1 }, undefined, 400, 'transfer_invalid'],
  ['a body that is too large', 'x'.repeat(100_000), undefined, 413, 'body_too_large'],
])('refuses %s', async (_, body, key, status, code) => {
  const before = await balances()
  const answer = await post(body, key)
  expect([answer.status, codeOf(answer)]).toEqual([status, code])
  expect(JSON.parse(answer.text)).toEqual({ code, message: expect.any(String), retryable: false })
  expect(await balances()).toEqual(before)
})

test('strangers and unknown routes are refused', async () => {
  expect((await call('/accounts', {}, 'guessed')).status).toBe(401)
  expect((await call('/nowhere')).status).toBe(404)
  expect((await call('/explain')).status).toBe(400)
})

test('the secret that it made is private', async () => {
  expect((await stat(join(folder, 'data', 'onlyonce-secret'))).mode & 0o777).toBe(0o600)
})

test('SIGTERM lets the transfer that runs finish, and ends the service cleanly', async () => {
  const pool = database.pool({ max: 2 })
  const holder = await pool.connect()
  await holder.query('BEGIN')
  await holder.query('SELECT FROM accounts FOR UPDATE')
  const running = post({ from: 'alice', to: 'bob', amount: 1 })
  const waiting =
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
  while ((await pool.query(waiting)).rowCount === 0);

  const ended = once(service, 'exit')
  service.kill('SIGTERM')
  // Refused at the door: the signal has arrived.
  while (await call('/accounts').catch(() => null));
  await holder.query('COMMIT')
  holder.release()
  expect((await running).status).toBe(201)
  expect(await ended).toEqual([0, null])
})
