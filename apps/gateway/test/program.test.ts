import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
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
  const child = run(PROGRAM, '--port', '0', '--folder', newFolder())
  const [, url, api_key] = /(http:\S+), API key (\S+)$/.exec(await firstLine(child))!
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${api_key}`, ...headers },
    })
  const order = 'amount=500&currency=eur&payment_method=pm_card_visa&confirm=true'
  const keyed = { 'idempotency-key': 'k 1' }
  expect((await post('/v1/payment_intents', order, { ...keyed, 'sandbox-fault': 'html' })).status).toBe(502)
  expect(await (await post('/v1/payment_intents', order, keyed)).json()).toMatchObject({
    status: 'succeeded',
  })
  const read = async (what: string) => (await fetch(`${url}/_sandbox/${what}`)).json()
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
    expect((await post(`/_sandbox/${path}`, body)).status).toBe(400)
  }
  expect((await fetch(`${url}/_sandbox/nonsense`)).status).toBe(404)
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
  expect(journal.map(({ payment_intent }) => payment_intent)).toEqual(expect.arrayContaining(paid))
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
    [[...folder, '--api-key', 'sk_live_1'], /sk_test_/],
    [[...folder, '--webhook-url', 'http://a'], /belong together/],
    [[...folder, '--webhook-url', 'ftp://a', '--webhook-secret', 's'], /http:/],
    [[...folder, '--colour', 'red'], /--colour/],
  ]
  for (const [args, message] of wrong) expect(() => readArguments(args)).toThrow(message)
})
