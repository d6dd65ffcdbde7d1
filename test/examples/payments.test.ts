import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { cleanUpLater } from '../setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { waitUntil } from '../setup/wait.ts'

const PROGRAM = fileURLToPath(new URL('../../examples/payments/server.ts', import.meta.url))

interface Service {
  readonly process: ChildProcess
  readonly address: string
}

let database: FreshDatabase
let service: Service
beforeAll(async () => {
  database = await freshDatabase()
  service = await start()
})

async function start(): Promise<Service> {
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM], {
    env: { ...process.env, DATABASE_URL: database.url, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanUpLater(() => end(child, 'SIGKILL').then(() => {}))
  for await (const line of createInterface({ input: child.stdout! })) {
    const [, address] = /^Listening on (\S+)/.exec(line) ?? []
    if (address !== undefined) return { process: child, address }
  }
  throw new Error('The service ended before it printed its address.')
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown[]> {
  if (child.exitCode !== null || child.signalCode !== null) return [child.exitCode, child.signalCode]
  const ended = once(child, 'exit')
  child.kill(signal)
  return await ended
}

async function pay(amount: unknown, key = randomUUID() as string) {
  const headers = { 'content-type': 'application/json', 'idempotency-key': key }
  const body = JSON.stringify({ amount })
  const response = await fetch(`${service.address}/payments`, { method: 'POST', headers, body })
  return {
    status: response.status,
    text: await response.text(),
    replayed: response.headers.get('idempotent-replayed'),
  }
}

async function payments(amount: number): Promise<string[]> {
  const response = await fetch(`${service.address}/payments`)
  const all = (await response.json()) as { amount: string; status: string }[]
  return all.filter((payment) => payment.amount === `${amount}`).map(({ status }) => status)
}

async function countCharges(): Promise<number> {
  const { rows } = await database.direct({ max: 1 }).query('SELECT count(*)::int AS n FROM gateway_charges')
  return rows[0].n
}

test.each([
  [4200, 201, 'captured'],
  [200_000, 402, 'declined'],
  [4213, 201, 'captured'],
] as const)('a payment of %i is answered %i, once', async (amount, status, became) => {
  const before = await countCharges()
  const key = randomUUID()
  const first = await pay(amount, key)
  expect(first).toMatchObject({ status, replayed: null, text: expect.stringContaining(became) })
  expect(await pay(amount, key)).toEqual({ ...first, replayed: 'true' })
  expect((await pay(amount + 1, key)).status).toBe(422)
  expect(await payments(amount)).toEqual([became])
  expect(await countCharges()).toBe(before + 1)
})

test('what is no payment uses no key up', async () => {
  const key = randomUUID()
  expect((await pay('much', key)).status).toBe(400)
  expect((await pay(4300, key)).status).toBe(201)
})

test('a payment whose process is killed while it is charged is finished by the next one, which ends cleanly', async () => {
  const before = await countCharges()
  const key = randomUUID()
  const unanswered = pay(4214, key).catch(() => 'unanswered')
  await waitUntil('it is charged', async () => (await countCharges()) > before)
  await end(service.process, 'SIGKILL')
  expect(await unanswered).toBe('unanswered')
  service = await start()
  await waitUntil('it is finished', async () => (await payments(4214)).includes('captured'))
  expect(await pay(4214, key)).toMatchObject({ status: 201, replayed: 'true' })
  expect(await payments(4214)).toEqual(['captured'])
  expect(await countCharges()).toBe(before + 1)
  expect(await end(service.process, 'SIGTERM')).toEqual([0, null])
})
