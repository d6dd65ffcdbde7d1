/**
 * The payment service and its workers as processes of their own, with the bounds that they have by default, flooded while PostgreSQL is
 * stopped for longer than all of these bounds.
 */
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { type GatewayProcess, startGateway } from '../../apps/gateway/index.ts'
import { createAccount, createApiKey } from '../../apps/payments/accounts/index.ts'
import { type ServiceProcess, startServiceProcess } from '../../apps/payments/test/service.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { waitUntil } from '../setup/wait.ts'
import { type Answered, type Ask, type Flooded, flood, send } from './flood.ts'
import { codeOf, expectDocumented } from './judge.ts'
import { startStoppableServer } from './stopped-server.ts'

/** Longer than 10 s, which a request, and pg's pool by itself, wait for a connection. */
const STOPPED_MS = 12_500
const PAYERS = 60
/** All of them at once; many more than there are connections to the database. */
const PROBES = 3_000
/** What waits for the database when it goes on, behind all others. */
const ANSWER_MAX_MS = 45_000

let api: ServiceProcess
let worker: ServiceProcess
let gateway: GatewayProcess
let apiKey: string
let payments: Flooded
let probes: Flooded

beforeAll(async () => {
  const server = await startStoppableServer()
  gateway = await startGateway()
  cleanUpLater(() => gateway.stop())
  const env = { GATEWAY_URL: gateway.url, LIMITS_WAIT_MS: '250', OVERLOAD_QUEUE_MS: '200' }
  api = await startServiceProcess({ database: server, role: 'api', env })
  worker = await startServiceProcess({ database: server, role: 'worker', env })
  apiKey = await makeKey(server.url)
  const over = new AbortController()
  const paying = floodWith(PAYERS, over.signal, () => payment(apiKey))
  await waitUntil('a payment was made', async () => (await gateway.journal()).length > 0)
  server.stall()
  const ended = new AbortController()
  const probing = floodWith(PROBES, ended.signal, () => ({ path: '/readyz', method: 'GET' }), 4_000)
  // These are no waits for a fact: they are how long the load and the stall last.
  await pause(STOPPED_MS)
  ended.abort()
  server.goOn()
  await pause(500)
  over.abort()
  ;[payments, probes] = await Promise.all([paying, probing])
}, 120_000)

describe('a payment service whose PostgreSQL is stopped for 12.5 s', () => {
  test.each(['api', 'worker'])(
    'keeps its %s alive, which says nothing of an error that nobody caught',
    (role) => {
      const { child, output } = role === 'api' ? api : worker
      expect({ code: child.exitCode, signal: child.signalCode }, output()).toEqual({
        code: null,
        signal: null,
      })
      expect(output()).not.toMatch(/is not a function|Unhandled|uncaught|Warning/i)
    },
  )

  test('answers every payment in time, with what the documents have', () => {
    expectDocumented(payments)
    const codes = payments.answers.map(codeOf)
    expect(codes.filter((code) => code !== null).length).toBeGreaterThan(0)
  })

  test('answers 3,000 connections that ask whether it is ready', () => {
    expectDocumented(probes)
    expect(probes.answers.length).toBeGreaterThanOrEqual(PROBES)
    expect(probes.answers.some(({ status }) => status === 503)).toBe(true)
  })

  test('is ready again, and takes payments', async () => {
    await waitUntil('it is ready', async () => (await ask({ path: '/readyz', method: 'GET' })).status === 200)
    await waitUntil('it takes a payment', async () => (await ask(payment(apiKey))).status === 201)
  })

  test('ends as it was told to, both of it', async () => {
    expect(await api.stop(), api.output()).toBe(0)
    expect(await worker.stop(), worker.output()).toBe(0)
  })
})

function payment(key: string): Ask {
  const body = { amount: 1200, currency: 'EUR', payment_method: 'pm_card_visa' }
  return {
    path: '/v1/payments',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  }
}

const portOf = ({ url }: ServiceProcess) => Number(new URL(url).port)

async function ask(asked: Ask): Promise<Answered> {
  return (await send(portOf(api), asked, ANSWER_MAX_MS)) as Answered
}

function floodWith(
  connections: number,
  over: AbortSignal,
  next: () => Ask,
  pauseMs = 1_000,
): Promise<Flooded> {
  return flood({ port: portOf(api), connections, over, answerMaxMs: ANSWER_MAX_MS, pauseMs, ask: next })
}

async function makeKey(connectionString: string): Promise<string> {
  const pool = new pg.Pool({ connectionString, max: 1 })
  try {
    const { id } = await createAccount(pool, 'Flood')
    return (await createApiKey(pool, id, 'test'))!.api_key
  } finally {
    await pool.end()
  }
}
