import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { admissionOf, velocityLimit } from '../../src/rate-limits/index.ts'
import { makeGate, openShop, SECRET } from '../contract/shop.ts'
import { POOLER } from '../setup/pooler.ts'
import { makeRecorder } from '../setup/recorder.ts'

it('a fresh key does not get around a velocity limit, and a replay is no try', async () => {
  const shop = await openShop()
  const pool = shop.database.pool({ max: 5 })
  const cards = velocityLimit({
    pool,
    name: 'card',
    secret: SECRET,
    rules: [{ points: 2, perMs: 60_000 }],
    pooler: POOLER,
    waitMaxMs: 10_000,
  })
  let runs = 0
  const heard = makeRecorder()
  const pay = idempotent(
    shop.open({ observe: heard }),
    {
      account: () => 'acct_1:test',
      operation: 'payments.create',
      admit: async ({ account, body }) => {
        const { card } = body() as { card: string }
        return admissionOf(await cards.take(account, card), {
          code: 'velocity_limited',
          reason: 'card-velocity',
        })
      },
    },
    async () => Response.json({ run: ++runs }, { status: 201 }),
  )
  const send = (key: string, card: string) =>
    pay(
      new Request('http://localhost/v1/payments', {
        method: 'POST',
        headers: { 'Idempotency-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ card }),
      }),
    )
  const key = randomUUID()
  for (let tries = 0; tries < 4; tries += 1) expect((await send(key, 'pm_1')).status).toBe(201)
  expect((await send(randomUUID(), 'pm_1')).status).toBe(201)
  for (let tries = 0; tries < 3; tries += 1) {
    const refused = await send(randomUUID(), 'pm_1')
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ code: 'velocity_limited', retryable: true })
    expect(refused.headers.get('stripe-rate-limited-reason')).toBe('card-velocity')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  const told = { protection: 'handler', id: { account: 'acct_1:test', operation: 'payments.create' } }
  expect(heard.of('not_admitted')).toMatchObject(Array(3).fill({ ...told, code: 'velocity_limited' }))
  expect((await send(key, 'pm_1')).headers.get('idempotent-replayed')).toBe('true')
  expect((await send(randomUUID(), 'pm_2')).status).toBe(201)
  expect(runs).toBe(3)
  const { rows } = await shop.observer.query('SELECT count(*)::int AS count FROM onlyonce.records')
  expect(rows[0].count).toBe(3)
})

it('who waited for another is asked about before it runs in its place', async () => {
  const shop = await openShop()
  const gate = makeGate()
  let asked = 0
  let runs = 0
  const pay = idempotent(
    shop.open(),
    {
      account: () => 'acct_1:test',
      operation: 'payments.create',
      onConcurrent: { waitMs: 20_000 },
      final: { 503: 'retry' },
      admit: () => (++asked === 1 ? { admit: true } : { admit: false, code: 'overloaded' }),
    },
    async () => {
      runs += 1
      await gate.pass()
      return new Response(null, { status: 503 })
    },
  )
  const headers = { 'Idempotency-Key': randomUUID() }
  const send = () => pay(new Request('http://localhost/v1/payments', { method: 'POST', headers }))
  const first = send()
  await gate.reached
  const second = send()
  gate.open()
  expect([(await first).status, (await second).status]).toEqual([503, 503])
  expect(await (await second).json()).toMatchObject({ code: 'overloaded' })
  expect([asked, runs]).toEqual([2, 1])
})
