import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Stripe from 'stripe'
import { afterAll, expect, it } from 'vitest'
import { compiled } from '../../../test/setup/compiled.ts'
import { DEMO_API_KEY } from '../accounts/index.ts'
import { openSandbox } from '../test/sandbox.ts'
import { openTestService, startServiceProcess, TEST_SECRET } from '../test/service.ts'

const TEA = { amount: 4_200, currency: 'eur', payment_method: 'pm_card_visa' }
const PROGRAM = compiled(new URL('./cli.ts', import.meta.url))
const HOUR_MS = 3_600_000
/** Around now, whatever the time of day. */
const [from, to] = [-1, 1].map((hours) => new Date(Date.now() + hours * HOUR_MS).toISOString())
const TIME = ['--from', from!, '--to', to!]

function run(env: Readonly<Record<string, string | undefined>>, ...args: readonly string[]) {
  return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
    const options = { env: { ...process.env, ...env } }
    execFile(process.execPath, [PROGRAM, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

const folder = await mkdtemp(join(tmpdir(), 'onlyonce-reconcile-'))
const kept = { DATABASE_URL: undefined, ONLYONCE_SECRET: undefined, DATA_FOLDER: folder }
const [service, sandbox] = await Promise.all([
  startServiceProcess({ database: { url: '' }, env: kept }),
  openSandbox(),
])
// Before anything is killed: it takes its database along only if it may end by itself.
afterAll(async () => {
  expect(await service.stop()).toBe(0)
  await rm(folder, { recursive: true, force: true })
})

it('ends with 1 and what differs, and with 2 and why where it could not look', async () => {
  const { gateway, client } = sandbox
  const { database, post } = await openTestService({ gateways: { test: client } })
  const env = { DATABASE_URL: database.url, ONLYONCE_SECRET: TEST_SECRET, GATEWAY_URL: gateway.url }
  await post('/v1/payments', TEA)
  const { host, port, apiKey } = gateway
  const stripe = new Stripe(apiKey, { host, port, protocol: 'http' })
  const { id } = await stripe.paymentIntents.create({ ...TEA, confirm: true })
  const [told, away] = await Promise.all([
    run(env, ...TIME, '--mode', 'test'),
    run({ ...env, GATEWAY_URL: 'http://127.0.0.1:9' }),
  ])
  expect([told.code, told.stderr]).toEqual([1, ''])
  expect(told.stdout).toContain(`stripe:test  ${from} to ${to}\n\nmatched          1\nmissing_here     1\n`)
  expect(told.stdout).toMatch(new RegExp(`^missing_here  payment  -  +${id}  -  +42\\.00 EUR$`, 'm'))
  expect([away.code, away.stdout]).toEqual([2, ''])
  expect(away.stderr).toMatch(/^The books could not be compared: .*ECONNREFUSED/)
})

it('ends with 0 where all is well, beside the service that keeps its database and its sandbox in a folder', async () => {
  const pay = () => service.post('/v1/payments', TEA, { apiKey: DEMO_API_KEY })
  expect((await pay()).status).toBe(201)
  const beside = await run(kept, ...TIME, '--json')
  expect([beside.code, beside.stderr]).toEqual([0, ''])
  expect(JSON.parse(beside.stdout)).toEqual({
    books: 'stripe:test',
    from,
    to,
    fresh: 0,
    counts: { matched: 1, missing_here: 0, missing_there: 0, amount_mismatch: 0, aged_unknown: 0 },
    differences: [],
  })
  // They are still there.
  expect((await pay()).status).toBe(201)
})
