import { Registry } from 'prom-client'
import { beforeAll, expect, test } from 'vitest'
import { logTo } from '../../src/entries/observe.ts'
import { prometheus } from '../../src/observe/prometheus.ts'
import { openMemoryTelemetry } from '../setup/telemetry.ts'
import { beginCaller, catchError, makeCall, openShop, type Shop } from './shop.ts'

const CANARY = '4242424242424242'
const SPELLINGS = [
  CANARY,
  '4242 4242 4242 4242',
  '4242-4242-4242-4242',
  '4242.4242.4242.4242',
  '4242 - 4242 - 4242 - 4242',
]

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** Everything that may be seen from outside. */
function openEverything() {
  const lines: unknown[] = []
  const log = (fields: object, message: string) => void lines.push([fields, message])
  const registry = new Registry()
  const telemetry = openMemoryTelemetry()
  const observe = [
    prometheus({ registry }),
    telemetry.observer,
    logTo({ debug: log, info: log, warn: log, error: log }),
  ]
  const seen = async () => ({
    log: JSON.stringify(lines),
    metrics: await registry.metrics(),
    telemetry: await telemetry.text(),
  })
  return { once: shop.open({ observe }), seen }
}

/** An error that says it in every way that errors have. */
function loudError(spelling: string): Error {
  const error = new Error(`declined: ${spelling}`, { cause: new Error(`cause: ${spelling}`) })
  error.name = `Declined ${spelling}`
  return Object.assign(error, { code: `E ${spelling}`, detail: spelling, input: { card: spelling } })
}

function namedError(spelling: string): Error {
  const error = new Error(spelling)
  error.name = spelling
  return error
}

test.each(SPELLINGS)('a card number is in nothing that can be seen: %s', async (spelling) => {
  const { once, seen } = openEverything()
  const call = () =>
    makeCall({ account: `acct ${spelling}`, operation: `pay ${spelling}`, input: { card: spelling } })
  const reply = async () => ({ card: spelling })
  const throwing = (error: unknown) => () => Promise.reject(error)
  const errors = [loudError(spelling), namedError(spelling), spelling, Number(CANARY), { code: spelling }]
  const warnings: string[] = []
  const listen = (warning: Error) => warnings.push(`${warning}`)
  process.on('warning', listen)

  for (const kind of ['transaction', 'handler'] as const) {
    const first = call()
    await once[kind === 'handler' ? 'execute' : kind](first, reply)
    await once[kind === 'handler' ? 'execute' : kind](first, reply)
    await once[kind === 'handler' ? 'execute' : kind]({ ...first, input: spelling.repeat(2) }, reply)
    for (const error of errors) {
      const failing = call()
      await catchError(once[kind === 'handler' ? 'execute' : kind](failing, throwing(error)))
      await once[kind === 'handler' ? 'execute' : kind](failing, reply).catch(() => {})
    }
  }
  const client = await beginCaller(shop)
  await once.within(client, call(), reply)
  for (const error of errors) await catchError(once.within(client, call(), throwing(error)))
  // An error of PostgreSQL that quotes the value.
  await catchError(once.transaction(call(), (tx) => tx.query('SELECT $1::int4', [`x ${spelling}`])))
  await catchError(once.within(client, call(), (tx) => tx.query('SELECT $1::int4', [`x ${spelling}`])))
  process.off('warning', listen)

  const { log, metrics, telemetry } = await seen()
  const { rows } = await shop.observer.query('SELECT error_code, error_message FROM onlyonce.attempts')
  const history = JSON.stringify(rows)
  const all = { log, metrics, telemetry, history, warnings: warnings.join() }
  for (const [where, text] of Object.entries(all)) {
    expect([where, text.replace(/[ .-]/g, '').includes(CANARY)]).toEqual([where, false])
  }
  // They were there to be masked.
  for (const text of [log, metrics, telemetry, history]) expect(text).toContain('[card number]')
})

test('no whole key, no account in metrics and spans, no input and no reply', async () => {
  const { once, seen } = openEverything()
  const call = makeCall({ account: 'the-account-name', input: { secret: 'the-input' } })
  for (const _ of [1, 2]) {
    await once.transaction(call, async () => 'the-reply')
    await once.execute({ ...call, operation: 'orders.create' }, async () => 'the-reply')
  }
  await once.transaction({ ...call, input: 'the-input too' }, async () => 'the-reply')
  const { rows } = await shop.observer.query(
    `SELECT encode(fingerprint, 'hex') AS hex, encode(fingerprint, 'base64') AS base64
     FROM onlyonce.records WHERE key = $1`,
    [call.key],
  )
  const { log, metrics, telemetry } = await seen()
  const never = [call.key, 'the-input', 'the-reply', ...rows.flatMap(({ hex, base64 }) => [hex, base64])]
  for (const text of [log, metrics, telemetry]) {
    expect(never.filter((secret) => text.includes(secret))).toEqual([])
  }
  expect(metrics + telemetry).not.toContain('the-account-name')
  expect(log).toContain('"security":true,"protection":"transaction","account":"the-account-name"')
})
