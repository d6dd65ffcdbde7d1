import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Stripe from 'stripe'
import { describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { DEMO_API_KEY } from '../accounts/index.ts'
import { openSandbox } from '../test/sandbox.ts'
import { openTestService, startServiceProcess, TEST_SECRET } from '../test/service.ts'

const TEA = { amount: 4_200, currency: 'eur', payment_method: 'pm_card_visa' }
const PROGRAM = fileURLToPath(new URL('./cli.ts', import.meta.url))
const HOUR_MS = 3_600_000
/** Around now, whatever the time of day. */
const [from, to] = [-1, 1].map((hours) => new Date(Date.now() + hours * HOUR_MS).toISOString())
const TIME = ['--from', from!, '--to', to!]

function run(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
    const options = { env: { ...process.env, ...env } }
    execFile(process.execPath, ['--import', 'tsx', PROGRAM, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

describe('npm run reconcile', async () => {
  const { gateway, client } = await openSandbox()
  const shop = await openTestService({ gateways: { test: client } })
  const env = { DATABASE_URL: shop.database.url, ONLYONCE_SECRET: TEST_SECRET, GATEWAY_URL: gateway.url }

  it('ends with 0 and numbers, and with 1 and what differs', async () => {
    await shop.post('/v1/payments', TEA)
    const counts = { matched: 1, missing_here: 0, missing_there: 0, amount_mismatch: 0, aged_unknown: 0 }
    const [yesterday, alike] = await Promise.all([run(env, '--json'), run(env, ...TIME)])
    const table = Object.entries(counts).map(([name, count]) => `${name.padEnd(15)}  ${count}\n`)
    expect(alike).toEqual({
      code: 0,
      stdout: `stripe:test  ${from} to ${to}\n\n${table.join('')}`,
      stderr: '',
    })
    const told = JSON.parse(yesterday.stdout)
    expect([yesterday.code, yesterday.stderr, told.counts]).toEqual([0, '', { ...counts, matched: 0 }])
    expect(told.from).toMatch(/T00:00:00\.000Z$/)
    expect(Date.parse(told.to) - Date.parse(told.from)).toBe(24 * HOUR_MS)
    expect(Date.now() - Date.parse(told.to)).toBeLessThan(25 * HOUR_MS)

    const { host, port, api_key } = gateway
    const stripe = new Stripe(api_key, { host, port, protocol: 'http' })
    const { id } = await stripe.paymentIntents.create({ ...TEA, confirm: true })
    const [text, json] = await Promise.all([run(env, ...TIME, '--mode', 'test'), run(env, ...TIME, '--json')])
    expect([text.code, text.stderr]).toEqual([1, ''])
    expect(text.stdout).toMatch(new RegExp(`^missing_here  +payment  -  +${id}  -  +42\\.00 EUR$`, 'm'))
    expect([json.code, json.stderr]).toEqual([1, ''])
    expect(JSON.parse(json.stdout)).toMatchObject({
      books: 'stripe:test',
      from,
      to,
      counts: { ...counts, missing_here: 1 },
      differences: [{ difference: 'missing_here', ours: null, theirs: { gateway_id: id, moved: 4_200 } }],
    })
  })

  it('ends with 2 and says why where it could not look', async () => {
    const cases: [Record<string, string>, string[], string][] = [
      [env, ['--from', '2026-02-30'], '--from is a date'],
      [env, ['--mode', 'live'], 'No processor is set up for live mode.'],
      [{ ...env, GATEWAY_URL: 'http://127.0.0.1:9' }, [], 'ECONNREFUSED'],
    ]
    const ended = await Promise.all(cases.map(([some, args]) => run(some, ...args)))
    for (const [i, { code, stdout, stderr }] of ended.entries()) {
      expect([code, stdout], stderr).toEqual([2, ''])
      expect(stderr).toContain(`The books could not be compared: `)
      expect(stderr).toContain(cases[i]![2])
    }
  })

  it('looks at what npm start keeps in its folder, while it runs and afterwards', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'onlyonce-reconcile-'))
    cleanUpLater(() => rm(folder, { recursive: true, force: true }))
    const kept = { DATABASE_URL: '', ONLYONCE_SECRET: '', DATA_FOLDER: folder }
    const service = await startServiceProcess({ database: { url: '' }, env: kept })
    const pay = () => service.post('/v1/payments', TEA, { api_key: DEMO_API_KEY })
    expect((await pay()).status).toBe(201)
    const beside = await run(kept, ...TIME)
    expect([beside.code, beside.stderr]).toEqual([0, ''])
    expect(beside.stdout).toContain('matched          1\n')
    // Its database and its sandbox are still there.
    expect((await pay()).status).toBe(201)
    expect(await service.stop()).toBe(0)
    const afterwards = await run(kept, ...TIME)
    expect([afterwards.code, afterwards.stderr]).toEqual([0, ''])
    expect(afterwards.stdout).toContain('matched          2\n')
  })
})
