import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { listening } from '../../../test/adapters/servers/listen.ts'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { readArguments } from '../options.ts'
import { openGateway, TEA } from './under-test.ts'

const PROGRAM = fileURLToPath(new URL('../program.ts', import.meta.url))
const DOOR = new URL('../index.ts', import.meta.url).href

function run(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  cleanUpLater(async () => void child.kill('SIGKILL'))
  return child
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  const [line] = await once(createInterface({ input: stdout! }), 'line')
  return line
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-gateway-'))
  cleanUpLater(async () => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'made', 'by itself')
}

it('runs by itself, for whoever has curl, until it is told to end', async () => {
  const folder = newFolder()
  const child = run(PROGRAM, '--port', '0', '--folder', folder)
  const [, url, apiKey] = /(http:\S+), API key (\S+)$/.exec(await firstLine(child))!
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${apiKey}`, ...headers },
    })
  const order = 'amount=500&currency=eur&payment_method=pm_card_visa&confirm=true'
  const keyed = { 'idempotency-key': 'k 1' }
  expect((await post('/v1/payment_intents', order, { ...keyed, 'sandbox-fault': 'html' })).status).toBe(502)
  expect(await (await post('/v1/payment_intents', order, keyed)).json()).toMatchObject({
    status: 'succeeded',
  })
  // Drawn, and kept where only its owner can read it.
  const token = readFileSync(join(folder, 'control-token'), 'utf8').trim()
  const control = { authorization: `Bearer ${token}` }
  const read = async (what: string) => (await fetch(`${url}/_sandbox/${what}`, { headers: control })).json()
  expect(await read('journal')).toMatchObject([{ kind: 'capture', key: 'k 1', amount: 500 }])
  expect(await read('requests?key=k+1')).toMatchObject([{ outcome: 'executed' }, { outcome: 'replayed' }])
  expect(await read('state')).toMatchObject({ received: { create: 2 }, movements: { capture: 1 } })
  for (const [path, body] of [
    ['clock', '{"advance_ms":-1}'],
    ['clock', '{}'],
    ['clock', 'soon'],
    ['release', '{"key":1}'],
    ['faults', 'null'],
  ] as const) {
    expect((await post(`/_sandbox/${path}`, body, control)).status).toBe(400)
  }
  expect((await fetch(`${url}/_sandbox/nonsense`, { headers: control })).status).toBe(404)
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

it('finishes what it is doing when it is told to end', async () => {
  const { gateway, stripe } = await openGateway()
  const many = Array.from({ length: 32 }, () => stripe.paymentIntents.create(TEA))
  await waitUntil('it works', async () => (await gateway.state()).received.create > 0)
  process.kill(gateway.pid, 'SIGTERM')
  const paid = (await Promise.allSettled(many)).flatMap((one) =>
    one.status === 'fulfilled' ? [one.value.id] : [],
  )
  await gateway.ended()
  const journal = await gateway.journal()
  expect(journal.map(({ payment_intent: paymentIntent }) => paymentIntent)).toEqual(
    expect.arrayContaining(paid),
  )
})

it('dies with the process that started it', async () => {
  const text = `import { startGateway } from '${DOOR}'; console.log((await startGateway()).pid); setInterval(() => {}, 1000)`
  const parent = run('--input-type=module', '--eval', text)
  const pid = Number(await firstLine(parent))
  const lives = () => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  expect(lives()).toBe(true)
  parent.kill('SIGKILL')
  await waitUntil('it is gone', () => !lives())
})

it('says what is wrong with how it is called', async () => {
  const { port, close } = await listening(createServer())
  cleanUpLater(close)
  await expect(openGateway({ port })).rejects.toThrow('ended with 3')
  const folder = ['--folder', '/tmp/x']
  const wrong: [string[], RegExp][] = [
    [[], /--folder/],
    [[...folder, '--port', 'many'], /--port/],
    [[...folder, '--webhook-url', 'http://a'], /belong together/],
    [[...folder, '--webhook-secret', 's'], /--webhook-secret/],
    [[...folder, '--api-key', 'sk_test_1'], /--api-key/],
    [[...folder, '--colour', 'red'], /--colour/],
  ]
  for (const [args, message] of wrong) expect(() => readArguments(args)).toThrow(message)
  expect(() => readArguments(folder, { SANDBOX_API_KEY: 'sk_live_1' })).toThrow(/sk_test_/)
  expect(() => readArguments(folder, { SANDBOX_CONTROL_TOKEN: '' })).toThrow(/SANDBOX_CONTROL_TOKEN/)
  const hook = { SANDBOX_WEBHOOK_SECRET: 's' }
  expect(() => readArguments([...folder, '--webhook-url', 'ftp://a'], hook)).toThrow(/http:/)
})

it('gives its secrets to nobody: not on its command line, not in its files, not without its token', async () => {
  const folder = newFolder()
  const secrets = { apiKey: 'sk_test_of_this_test', controlToken: 'token-of-this-test-0123456789' }
  const webhook = { url: 'http://127.0.0.1:9/hooks', secret: 'whsec_of_this_test' }
  const { gateway, stripe } = await openGateway({ folder, webhook, ...secrets })
  await stripe.paymentIntents.create(TEA)
  await gateway.advance(1_000)
  const line = readFileSync(`/proc/${gateway.pid}/cmdline`, 'utf8')
  expect(line).toContain('--webhook-url')
  for (const secret of [...Object.values(secrets), webhook.secret]) expect(line).not.toContain(secret)
  const files = readdirSync(folder)
  expect(files.length).toBeGreaterThan(3)
  for (const file of files) expect([file, statSync(join(folder, file)).mode & 0o077]).toEqual([file, 0])
  expect(statSync(folder).mode & 0o077).toBe(0)
  for (const authorization of [
    '',
    'Bearer ',
    `Bearer ${secrets.apiKey}`,
    `Bearer ${secrets.controlToken}x`,
  ]) {
    for (const [method, path] of [
      ['GET', 'state'],
      ['GET', 'journal'],
      ['POST', 'clock'],
      ['DELETE', 'faults'],
      ['GET', 'nonsense'],
    ]) {
      const answer = await fetch(`${gateway.url}/_sandbox/${path}`, {
        method: method!,
        headers: { authorization },
      })
      expect([path, answer.status]).toEqual([path, 401])
      expect(await answer.text()).not.toMatch(/whsec|capture/)
    }
  }
})

it('ends with a line where its folder cannot be made', async () => {
  const child = run(PROGRAM, '--port', '0', '--folder', '/proc/x/below')
  const [line] = await once(createInterface({ input: child.stderr! }), 'line')
  expect(line).toMatch(/^The sandbox gateway did not start: ENOENT: .*'\/proc\/x'$/)
  if (child.exitCode === null) await once(child, 'exit')
  expect(child.exitCode).toBe(1)
})
