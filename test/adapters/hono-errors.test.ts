import { randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { beforeAll, expect, test, vi } from 'vitest'
import {
  type HonoOptions,
  type IdempotencyVariables,
  idempotent,
} from '../../src/http/adapters/hono/index.ts'
import { notExecuted, type Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { leaveEffect, openShop, type Shop } from '../contract/shop.ts'

type AppEnv = { Variables: IdempotencyVariables<PostgresTx> }

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
})

/** For work that has no transaction, and asks for none. */
const NO_TX = {} as PostgresTx

/** An application whose one route does this, and the number of times that it did. */
function appOf(
  options: Partial<HonoOptions<AppEnv>>,
  work: (tx: PostgresTx, runs: number) => Promise<Response> | Response,
) {
  const app = new Hono<AppEnv>()
  const counted = { app, runs: 0 }
  app.post('/orders', idempotent(once, { account: () => 'acct_1', ...options }), async (c) => {
    counted.runs += 1
    const tx = options.protect === 'transaction' ? c.var.idempotency!.tx : NO_TX
    return await work(tx, counted.runs)
  })
  return counted
}

async function post(app: Hono<AppEnv>, key: string) {
  const response = await app.request('/orders', { method: 'POST', headers: { 'Idempotency-Key': key } })
  const replayed = response.headers.get('idempotent-replayed') === 'true'
  return { status: response.status, text: await response.text(), replayed }
}

const stateOf = async (key: string) =>
  (await once.explain({ account: 'acct_1', operation: 'POST /orders', key })).state

test('an HTTPException is a reply, stored and replayed as it was', async () => {
  const key = randomUUID()
  const counted = appOf({}, (_, runs) => {
    throw new HTTPException(402, { message: `declined in run ${runs}` })
  })
  expect(await post(counted.app, key)).toEqual({ status: 402, text: 'declined in run 1', replayed: false })
  expect(await post(counted.app, key)).toEqual({ status: 402, text: 'declined in run 1', replayed: true })
  expect(counted.runs).toBe(1)
})

test('what onError makes of an error is a reply too, and the work is never run twice', async () => {
  const key = randomUUID()
  const counted = appOf({}, (_, runs) => {
    throw new Error(`run ${runs} broke`)
  })
  counted.app.onError((error, c) => c.json({ error: error.message }, 500))
  expect(await post(counted.app, key)).toMatchObject({ status: 500, text: '{"error":"run 1 broke"}' })
  expect(await post(counted.app, key)).toEqual({
    status: 500,
    text: '{"error":"run 1 broke"}',
    replayed: true,
  })
  expect(counted.runs).toBe(1)
})

test('a sub-app has an onError of its own', async () => {
  const key = randomUUID()
  const { app: sub } = appOf({ operation: 'POST /orders' }, (_, runs) => {
    throw new Error(`run ${runs} broke`)
  })
  sub.onError((error, c) => c.json({ sub: error.message }, 422))
  const app = new Hono<AppEnv>().route('/', sub)
  expect(await post(app, key)).toMatchObject({ status: 422, text: '{"sub":"run 1 broke"}' })
  expect(await post(app, key)).toMatchObject({ status: 422, text: '{"sub":"run 1 broke"}', replayed: true })
})

test('notExecuted() lets the same request run again, and is answered by a problem, whatever onError says', async () => {
  const key = randomUUID()
  const counted = appOf({}, (_, runs) => {
    if (runs === 1) throw notExecuted('the warehouse is closed')
    return new Response('done')
  })
  counted.app.onError((_, c) => c.text('later', 503))
  const { status, text } = await post(counted.app, key)
  expect([status, JSON.parse(text)]).toEqual([
    503,
    expect.objectContaining({ code: 'not_executed', executed: 'no' }),
  ])
  expect(await stateOf(key)).toBe('retryable')
  expect(await post(counted.app, key)).toEqual({ status: 200, text: 'done', replayed: false })
  expect(await post(counted.app, key)).toEqual({ status: 200, text: 'done', replayed: true })
})

test('an error of work that is rerunnable lets it run again, and a decline does not', async () => {
  const key = randomUUID()
  const counted = appOf({ rerunnable: true }, (_, runs) => {
    if (runs === 1) throw new HTTPException(500)
    throw new HTTPException(402, { message: `declined in run ${runs}` })
  })
  expect(await post(counted.app, key)).toMatchObject({ status: 500 })
  expect(await post(counted.app, key)).toEqual({ status: 402, text: 'declined in run 2', replayed: false })
  expect(await post(counted.app, key)).toEqual({ status: 402, text: 'declined in run 2', replayed: true })
})

test('a transaction that throws is rolled back, whatever is answered', async () => {
  const key = randomUUID()
  const note = randomUUID()
  const counted = appOf({ protect: 'transaction' }, async (tx, runs) => {
    await leaveEffect(tx, note)
    if (runs === 1) throw new HTTPException(402, { message: 'declined' })
    return new Response('done', { status: 201 })
  })
  expect(await post(counted.app, key)).toEqual({ status: 402, text: 'declined', replayed: false })
  expect(await shop.countEffects(note)).toBe(0)
  expect(await post(counted.app, key)).toEqual({ status: 201, text: 'done', replayed: false })
  expect(await post(counted.app, key)).toEqual({ status: 201, text: 'done', replayed: true })
  expect(await shop.countEffects(note)).toBe(1)
})

test('a serialization failure is told as 503, and not as whatever onError makes of it', async () => {
  const key = randomUUID()
  const counted = appOf({ protect: 'transaction' }, async (tx) => {
    await tx.query(`DO $$ BEGIN RAISE SQLSTATE '40001'; END $$`)
    return new Response('never')
  })
  counted.app.onError((_, c) => c.text('broken', 500))
  const { status, text } = await post(counted.app, key)
  expect([status, JSON.parse(text).code]).toEqual([503, 'serialization_failed'])
})

test('what is thrown and is no Error goes through, when the record knows of it', async () => {
  const key = randomUUID()
  const { app } = appOf({}, () => {
    throw 'a word'
  })
  await expect(post(app, key)).rejects.toBe('a word')
  const again = await post(app, key)
  expect([again.status, JSON.parse(again.text).code]).toEqual([500, 'handler_failed'])
})

test('a handler that returns nothing has failed, and holds no key', async () => {
  const key = randomUUID()
  const quiet = vi.spyOn(console, 'error').mockImplementation(() => {})
  const { app } = appOf({}, () => undefined as unknown as Response)
  expect(await post(app, key)).toMatchObject({ status: 500 })
  expect(await stateOf(key)).toBe('completed')
  quiet.mockRestore()
})

test('an error of a middleware around the layer changes nothing of what is stored', async () => {
  const key = randomUUID()
  let fails = true
  const { app } = appOf({}, () => new Response('done'))
  const outer = new Hono<AppEnv>()
  outer.use(async (_, next) => {
    await next()
    if (fails) throw new HTTPException(500, { message: 'the logger broke' })
  })
  outer.route('/', app)
  expect(await post(outer, key)).toMatchObject({ status: 500, text: 'the logger broke' })
  fails = false
  expect(await post(outer, key)).toEqual({ status: 200, text: 'done', replayed: true })
})
