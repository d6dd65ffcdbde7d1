/** What operators say against what the processor shows: no decision books what the processor does not have. */
import { callRefused } from 'onlyonce'
import { beforeAll, describe, expect, it } from 'vitest'
import { captureOf, chargeOf, refundOf } from './charges.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, TEST_OPS_TOKEN, type TestService } from './service.ts'

const TEA = { amount: 1_000, currency: 'EUR', payment_method: 'pm_card_visa' }
const HELD = { ...TEA, capture_method: 'manual' }
const HOUR_MS = 3_600_000
const SIGNED = { by: 'ann', why: 'looked it up at the processor' }
let sandbox: Sandbox
let shop: TestService
/** The same service, whose processor refuses everything. */
let refused: TestService
/** The same service, whose processor may show a charge an hour late. */
let slow: TestService

beforeAll(async () => {
  sandbox = await openSandbox({ searchLagMs: 0 }, { visibleWithinMs: 1 })
  shop = await openTestService({ gateways: { test: sandbox.client } })
  const refuse = async () => {
    throw callRefused(new Error('The processor does not understand it.'))
  }
  const gateway = { ...sandbox.client, authorize: refuse, capture: refuse, void: refuse, refund: refuse }
  refused = await openTestService({ database: shop.database, gateways: { test: gateway } })
  const late = { ...sandbox.client, visibleWithinMs: HOUR_MS }
  slow = await openTestService({ database: shop.database, gateways: { test: late } })
})

let asked = 0
async function parked(body: object, path = '/v1/payments', operation = 'payments.create') {
  asked += 1
  const key = `doubted-request-${asked}`
  const { apiKey, account } = shop
  expect((await refused.post(path, body, { apiKey, key })).body.code).toBe('parked')
  return { account, operation, key }
}

const tell = (path: 'decisions' | 'evidence', body: object, service = shop) =>
  service.post(`/ops/record/${path}`, { ...SIGNED, ...body }, { apiKey: TEST_OPS_TOKEN, key: '' })
const decide = (record: object, decision: string, more: object = {}) =>
  tell('decisions', { ...record, decision, ...more })

/** What a person does at the processor. */
async function byHand(path: string, form: Record<string, string>): Promise<string> {
  const { url, apiKey } = sandbox.gateway
  const headers = { authorization: `Bearer ${apiKey}` }
  const body = new URLSearchParams(form)
  const made = await fetch(`${url}/v1/${path}`, { method: 'POST', headers, body })
  return ((await made.json()) as { id: string }).id
}
const charge = (more: Record<string, string> = {}) =>
  byHand('payment_intents', {
    amount: '1000',
    currency: 'eur',
    payment_method: 'pm_card_visa',
    confirm: 'true',
    ...more,
  })
async function captured(form: Record<string, string>, amount = '1000'): Promise<string> {
  const id = await charge({ capture_method: 'manual', amount })
  await byHand(`payment_intents/${id}/capture`, form)
  return id
}
async function refundedBy(amount: string): Promise<string> {
  const id = await charge()
  await byHand('refunds', { payment_intent: id, amount })
  return id
}
async function canceledAfter(amount: string): Promise<string> {
  const id = await captured({ amount_to_capture: amount, final_capture: 'false' })
  await byHand(`payment_intents/${id}/cancel`, {})
  return id
}
const books = async ({ key }: { key: string }) =>
  (
    await shop.service.pool.query(
      'SELECT status, captured::int, held::int FROM payments.payments WHERE account = $1 AND idempotency_key = $2',
      [shop.account, key],
    )
  ).rows[0]

it('a charge that was taken in part, or given back, settles no payment', async () => {
  const record = await parked(TEA)
  for (const { gateway_id: gatewayId, amounts } of [
    { gateway_id: await captured({ amount_to_capture: '1' }), amounts: ['1 EUR', '1000 EUR'] },
    { gateway_id: await captured({ amount_to_capture: '1000' }, '2000'), amounts: ['2000 EUR', '1000 EUR'] },
    { gateway_id: await canceledAfter('400'), amounts: ['400 EUR', '1000 EUR'] },
    { gateway_id: await refundedBy('1000'), amounts: ['1000 EUR', 'given 1000'] },
    { gateway_id: await refundedBy('300'), amounts: ['1000 EUR', 'given 300'] },
  ]) {
    const told = [
      await decide(record, 'executed', { gateway_id: gatewayId }),
      await tell('evidence', { ...record, outcome: 'executed', gateway_id: gatewayId }),
    ]
    for (const { body } of told) {
      expect.soft(body).toMatchObject({ status: 400, field: 'gateway_id' })
      for (const amount of amounts) expect.soft(body.detail).toContain(amount)
    }
  }
  // Manual capture at the processor, and all of it was taken: that is what the payment asked for.
  const gatewayId = await captured({})
  expect((await decide(record, 'executed', { gateway_id: gatewayId })).body).toMatchObject({
    state: 'completed',
  })
  expect(await books(record)).toEqual({ status: 'succeeded', captured: 1_000, held: 0 })
})

it('a charge of which something was taken is no hold', async () => {
  const record = await parked(HELD)
  const captureBefore = new Date(Date.now() + 86_400_000).toISOString()
  for (const gatewayId of [
    await charge(),
    await captured({ amount_to_capture: '400' }),
    await captured({ amount_to_capture: '400', final_capture: 'false' }),
  ]) {
    for (const { body } of [
      await decide(record, 'executed', { gateway_id: gatewayId, capture_before: captureBefore }),
      await tell('evidence', {
        ...record,
        outcome: 'executed',
        gateway_id: gatewayId,
        capture_before: captureBefore,
      }),
    ]) {
      expect.soft(body).toMatchObject({ status: 400, field: 'gateway_id' })
      expect.soft(body.detail).toContain('decide not_executed')
    }
  }
  // The way out that the sentence names.
  const own = await chargeOf(sandbox.client, shop, record)
  await byHand(`payment_intents/${own}/capture`, {})
  expect((await decide(record, 'executed', { gateway_id: own })).body.field).toBe('gateway_id')
  expect((await decide(record, 'not_executed')).body.field).toBe('decision')
  await byHand('refunds', { payment_intent: own })
  expect((await decide(record, 'not_executed')).body).toMatchObject({ state: 'completed' })
  expect(await books(record)).toMatchObject({ status: 'failed', captured: 0 })
})

it('a charge that names another call, payment or account of ours is that of another payment', async () => {
  const record = await parked(TEA)
  for (const named of ['onlyonce_key', 'payment', 'account']) {
    const gatewayId = await charge({ [`metadata[${named}]`]: `${named}-of-another-request` })
    const { body } = await decide(record, 'executed', { gateway_id: gatewayId })
    expect(body).toMatchObject({ status: 400, field: 'gateway_id' })
    expect(body.detail).toContain('another payment')
  }
})

it('a payment or a refund that the processor shows under our key cannot be declared not executed', async () => {
  const paid = (await shop.post('/v1/payments', TEA)).body
  for (const { record, make } of [
    { record: await parked(TEA), make: chargeOf },
    { record: await parked(HELD), make: chargeOf },
    {
      record: await parked({ amount: 300 }, `/v1/payments/${paid.id}/refunds`, 'refunds.create'),
      make: refundOf,
    },
  ]) {
    const gatewayId = await make(sandbox.client, shop, record)
    for (const { body, field } of [
      { ...(await decide(record, 'not_executed', { unchecked: true })), field: 'decision' },
      { ...(await tell('evidence', { ...record, outcome: 'declined' })), field: 'outcome' },
    ]) {
      expect(body).toMatchObject({ status: 400, field })
      expect(body.detail).toContain(gatewayId)
    }
    expect((await decide(record, 'executed', { gateway_id: gatewayId })).body).toMatchObject({
      state: 'completed',
    })
  }
})

it('not executed is decided while the processor is away only by an operator who answers for it', async () => {
  const record = await parked(TEA)
  await sandbox.gateway.fault({ fault: 'error_before', on: 'lookup', rate: 1 })
  expect((await decide(record, 'not_executed')).body).toMatchObject({
    status: 503,
    executed: 'not_by_this_request',
  })
  const { body } = await decide(record, 'not_executed', { unchecked: true })
  await sandbox.gateway.behave()
  expect(body).toMatchObject({ state: 'completed', audit: [{ why: `Unchecked: ${SIGNED.why}` }] })
})

it('a capture or a cancellation is what the processor shows of it', async () => {
  const paid = (await shop.post('/v1/payments', HELD)).body
  const capture = await parked({ amount: 400 }, `/v1/payments/${paid.id}/capture`, 'payments.capture')
  expect((await decide(capture, 'executed')).body).toMatchObject({ status: 400, field: 'decision' })
  await captureOf(sandbox.client, shop, capture)
  expect((await decide(capture, 'not_executed')).body).toMatchObject({ status: 400, field: 'decision' })
  expect((await decide(capture, 'executed')).body).toMatchObject({ state: 'completed' })
  // One that a person has made has no entry of ours, and is known by what was taken.
  const second = await parked({ amount: 100 }, `/v1/payments/${paid.id}/capture`, 'payments.capture')
  expect((await decide(second, 'executed')).body).toMatchObject({ status: 400, field: 'decision' })
  const [{ gateway_id: gatewayId }] = paid.attempts
  await byHand(`payment_intents/${gatewayId}/capture`, { amount_to_capture: '100', final_capture: 'false' })
  expect((await decide(second, 'executed')).body).toMatchObject({ state: 'completed' })
  const cancel = await parked({}, `/v1/payments/${paid.id}/cancel`, 'payments.cancel')
  expect((await decide(cancel, 'executed')).body).toMatchObject({ status: 400, field: 'decision' })
  await byHand(`payment_intents/${gatewayId}/cancel`, {})
  expect((await decide(cancel, 'not_executed')).body).toMatchObject({ status: 400, field: 'decision' })
  expect((await decide(cancel, 'executed')).body).toMatchObject({ state: 'completed' })
})

it('a payment whose charge was given to another one can be ended, once the charge is given back', async () => {
  const [own, other] = [await parked(TEA), await parked(TEA)]
  const gatewayId = await chargeOf(sandbox.client, shop, own)
  await sandbox.gateway.fault({ fault: 'error_before', on: 'lookup', rate: 1 })
  expect((await decide(other, 'executed', { gateway_id: gatewayId, unchecked: true })).body.state).toBe(
    'completed',
  )
  await sandbox.gateway.behave()
  const { rows } = await shop.service.pool.query(
    'SELECT id FROM payments.payments WHERE account = $1 AND idempotency_key = $2',
    [shop.account, other.key],
  )
  expect((await decide(own, 'executed', { gateway_id: gatewayId })).body).toMatchObject({
    field: 'gateway_id',
    detail: expect.stringContaining(rows[0].id),
  })
  // A retry finds the charge under its own key, and cannot settle with it.
  expect((await decide(own, 'retry')).body.state).toBe('retryable')
  const retried = await shop.post('/v1/payments', TEA, { key: own.key })
  expect(retried.body).toMatchObject({ status: 409, code: 'outcome_pending', retryable: true })
  expect(retried.text).not.toContain(rows[0].id)
  const path = `/ops/record?${new URLSearchParams(own)}`
  expect((await shop.ask(path, { apiKey: TEST_OPS_TOKEN })).body.why).toContain(rows[0].id)
  // The customer has paid for this one: it is not failed before the money is given back.
  expect((await decide(own, 'not_executed')).body).toMatchObject({ status: 400, field: 'decision' })
  expect((await shop.post(`/v1/payments/${rows[0].id}/refunds`, {})).status).toBe(201)
  expect((await decide(own, 'not_executed')).body).toMatchObject({ state: 'completed' })
  expect(await books(own)).toMatchObject({ status: 'failed', captured: 0 })
})

describe('while the processor may not show a charge yet', () => {
  const decideNow = (record: object, decision: string, more: object = {}) =>
    tell('decisions', { ...record, decision, ...more }, slow)
  const sentUntil = async ({ key }: { key: string }): Promise<Date> =>
    (await shop.service.pool.query('SELECT sent_until FROM onlyonce.records WHERE key = $1', [key])).rows[0]
      .sent_until
  const age = ({ key }: { key: string }) =>
    shop.service.pool.query(
      `UPDATE onlyonce.records SET sent_until = sent_until - interval '1 hour' WHERE key = $1`,
      [key],
    )

  it('no operator can say that a request was not carried out, and the answer says from when', async () => {
    const paid = (await shop.post('/v1/payments', TEA)).body
    const held = (await shop.post('/v1/payments', HELD)).body
    const records = [
      await parked(TEA),
      await parked({ amount: 300 }, `/v1/payments/${paid.id}/refunds`, 'refunds.create'),
      await parked({ amount: 400 }, `/v1/payments/${held.id}/capture`, 'payments.capture'),
    ]
    for (const record of records) {
      const from = (await sentUntil(record)).getTime() + HOUR_MS
      for (const refusal of [
        await decideNow(record, 'not_executed'),
        await decideNow(record, 'not_executed', { unchecked: true }),
        await decideNow(record, 'retry', { earlier_call_is_void: true }),
        await tell('evidence', { ...record, outcome: 'declined' }, slow),
      ]) {
        expect.soft(refusal.body).toMatchObject({ status: 409, code: 'decision_too_early', retryable: true })
        expect.soft(Math.abs(Date.parse(refusal.body.decidable_at) - from)).toBeLessThanOrEqual(1)
        expect.soft(refusal.body.detail).toContain(refusal.body.decidable_at)
        const wait = Number(refusal.headers.get('retry-after'))
        expect.soft(wait).toBeGreaterThan(3_000)
        expect.soft(wait).toBeLessThanOrEqual(3_600)
      }
      await age(record)
      expect((await decideNow(record, 'not_executed')).body).toMatchObject({ state: 'completed' })
    }
  })

  it('a written statement of the processor decides, and the audit keeps it', async () => {
    const [record, other] = [await parked(TEA), await parked(TEA)]
    const statement = { processor_statement: 'case 4711 at the processor' }
    const why = `Statement of the processor (case 4711 at the processor): ${SIGNED.why}`
    for (const wrong of [
      await decideNow(record, 'executed', { ...statement, gateway_id: 'pi_1' }),
      await decideNow(record, 'retry', statement),
    ])
      expect(wrong.body).toMatchObject({ status: 400, field: 'processor_statement' })
    const ended = await decideNow(record, 'not_executed', statement)
    expect(ended.body).toMatchObject({ state: 'completed', audit: [{ why }] })
    const voided = await decideNow(other, 'retry', { ...statement, earlier_call_is_void: true })
    expect(voided.body).toMatchObject({ state: 'retryable', audit: [{ why }] })
    // The word of an operator that it may run again proves nothing either.
    expect((await decideNow(other, 'not_executed')).body.code).toBe('decision_too_early')
  })

  it('a statement does not stand against a charge that the processor shows', async () => {
    const record = await parked(TEA)
    const gatewayId = await chargeOf(sandbox.client, shop, record)
    const { body } = await decideNow(record, 'not_executed', { processor_statement: 'case 4712' })
    expect(body).toMatchObject({ status: 400, field: 'decision' })
    expect(body.detail).toContain(gatewayId)
  })

  it('a call whose end the processor shows is waited for no longer', async () => {
    const record = await parked(TEA)
    const gatewayId = await chargeOf(sandbox.client, shop, record)
    await byHand('refunds', { payment_intent: gatewayId })
    expect((await decideNow(record, 'not_executed')).body).toMatchObject({ state: 'completed' })
  })
})
