import { beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import { expirer } from '../payments/index.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, type TestService } from './service.ts'

const TEA = { amount: 4_200, currency: 'eur', payment_method: 'pm_card_visa' }
const HELD = { ...TEA, capture_method: 'manual' }
let sandbox: Sandbox
let shop: TestService

beforeAll(async () => {
  sandbox = await openSandbox()
  shop = await openTestService({ gateways: { test: sandbox.client } })
})

async function pay(body: object = TEA) {
  const { status, body: payment } = await shop.post('/v1/payments', body)
  expect(status).toBe(201)
  return payment
}

const find = async (id: string) => (await shop.ask(`/v1/payments/${id}`)).body
const capture = (id: string, body: object = {}) => shop.post(`/v1/payments/${id}/capture`, body)
const refund = (id: string, body: object = {}) => shop.post(`/v1/payments/${id}/refunds`, body)
const cancel = (id: string, body: object = {}) => shop.post(`/v1/payments/${id}/cancel`, body)

/** A capture that the processor has not carried out yet, and how to let it. */
async function captureUnderWay(id: string, amount: number) {
  await sandbox.gateway.fault({ fault: 'hold_before', on: 'capture' })
  const answer = capture(id, { amount })
  await waitUntil('the capture has reserved its part', async () => {
    const { status, amount_capturable: amountCapturable } = await find(id)
    return status === 'requires_capture' && amountCapturable === 4_200 - amount
  })
  return async () => {
    await sandbox.gateway.release()
    return await answer
  }
}

async function balanceOf(currency = 'EUR') {
  const { body } = await shop.ask('/v1/balances')
  return (
    body.data.find((one: { currency: string }) => one.currency === currency) ?? { available: 0, pending: 0 }
  )
}

describe('a payment', () => {
  it('is charged once, and replayed byte for byte', async () => {
    const first = await shop.post('/v1/payments', { ...TEA, reference: 'order-1' }, { key: 'order-1-first' })
    expect(first.status).toBe(201)
    expect(first.body).toMatchObject({
      object: 'payment',
      live: false,
      status: 'succeeded',
      amount: 4_200,
      currency: 'EUR',
      amount_captured: 4_200,
      warnings: [],
      attempts: [{ number: 1, gateway: 'stripe', status: 'captured' }],
    })
    expect(first.headers.get('location')).toBe(`/v1/payments/${first.body.id}`)
    const again = await shop.post('/v1/payments', { reference: 'order-1', ...TEA }, { key: 'order-1-first' })
    expect([again.status, again.text]).toEqual([201, first.text])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await find(first.body.id)).toEqual(first.body)
    const charged = await sandbox.gateway.journal()
    expect(charged.filter(({ metadata }) => metadata.payment === first.body.id)).toHaveLength(1)
  })

  it('that is declined says so, with what to do, and stays declined', async () => {
    const broke = { ...TEA, payment_method: 'pm_card_chargeDeclinedInsufficientFunds' }
    const first = await shop.post('/v1/payments', broke, { key: 'a-card-without-funds' })
    expect(first.status).toBe(402)
    expect(first.headers.get('content-type')).toBe('application/problem+json')
    expect(first.body).toMatchObject({
      code: 'payment_declined',
      decline: { code: 'card_declined', decline_code: 'insufficient_funds' },
      payment: { status: 'failed', amount_captured: 0, attempts: [{ status: 'declined' }] },
    })
    const again = await shop.post('/v1/payments', broke, { key: 'a-card-without-funds' })
    expect([again.status, again.text]).toEqual([402, first.text])
    expect((await refund(first.body.payment.id)).body.code).toBe('payment_state')
  })

  it('under a key that was used for another amount is refused', async () => {
    await shop.post('/v1/payments', TEA, { key: 'one-key-two-amounts' })
    const other = await shop.post('/v1/payments', { ...TEA, amount: 4_300 }, { key: 'one-key-two-amounts' })
    expect([other.status, other.body.code]).toEqual([422, 'key_reused'])
  })

  it('that looks like one shortly before goes through, with a warning', async () => {
    const body = { ...TEA, payer: 'alice', reference: 'invoice-7' }
    const first = await pay(body)
    const second = await pay(body)
    expect(first.warnings).toEqual([])
    expect(second).toMatchObject({
      status: 'succeeded',
      warnings: [{ code: 'duplicate_intent', payment: first.id }],
    })
    for (const other of [{ payer: 'bob' }, { reference: 'invoice-8' }, { amount: 1 }]) {
      expect((await pay({ ...body, ...other })).warnings).toEqual([])
    }
  })

  it('with the number of a card is refused, and the number is repeated to nobody', async () => {
    for (const paymentMethod of ['4242424242424242', 'card_4242424242424242', '378282246310005']) {
      const { status, body, text } = await shop.post('/v1/payments', {
        ...TEA,
        payment_method: paymentMethod,
      })
      expect([status, body.code, body.field]).toEqual([400, 'card_number', 'payment_method'])
      expect(body.executed).toBe('not_by_this_request')
      expect(text).not.toContain(paymentMethod)
    }
  })

  it('in a mode that has no processor is refused for what it is, and claims no key', async () => {
    const { account, apiKey } = await shop.addCaller('live')
    const { status, body } = await shop.post('/v1/payments', TEA, { apiKey })
    expect([status, body.code, body.retryable]).toEqual([403, 'mode_unavailable', false])
    expect(body.executed).toBe('not_by_this_request')
    const { rows } = await shop.service.pool.query('SELECT FROM onlyonce.records WHERE account = $1', [
      account,
    ])
    expect(rows).toHaveLength(0)
  })

  it('of another account is not there', async () => {
    const { id } = await pay()
    const { apiKey } = await shop.addCaller()
    expect((await shop.ask(`/v1/payments/${id}`, { apiKey })).status).toBe(404)
    for (const what of ['capture', 'cancel', 'refunds']) {
      const { status, body } = await shop.post(`/v1/payments/${id}/${what}`, {}, { apiKey })
      expect([status, body.code]).toEqual([404, 'not_found'])
    }
  })
})

describe('a payment that is held', () => {
  it('is captured in parts, until the final one lets go of the rest', async () => {
    const before = await balanceOf()
    const { id } = await pay(HELD)
    expect(await find(id)).toMatchObject({ status: 'requires_capture', amount_capturable: 4_200 })
    expect((await balanceOf()).pending - before.pending).toBe(4_200)
    expect((await capture(id, { amount: 1_000 })).body).toMatchObject({
      status: 'partially_captured',
      amount_captured: 1_000,
      amount_capturable: 3_200,
    })
    expect((await capture(id, { amount: 3_201 })).body).toMatchObject({ code: 'amount_too_large' })
    expect((await capture(id, { amount: 1_200, final: true })).body).toMatchObject({
      status: 'succeeded',
      amount_captured: 2_200,
      amount_capturable: 0,
    })
    expect((await capture(id, { amount: 1 })).body).toMatchObject({ status: 422, code: 'payment_state' })
    const after = await balanceOf()
    expect([after.available - before.available, after.pending - before.pending]).toEqual([2_200, 0])
  })

  it('is captured as a whole where nothing else is said', async () => {
    const { id } = await pay(HELD)
    expect((await capture(id)).body).toMatchObject({ status: 'succeeded', amount_captured: 4_200 })
  })

  it('is never captured beyond its amount, by fifty at once', async () => {
    const { id, attempts } = await pay({ ...HELD, amount: 1_000 })
    const all = await Promise.all(Array.from({ length: 50 }, () => capture(id, { amount: 70, final: false })))
    const done = all.filter(({ status }) => status === 200)
    const refused = all.filter(({ status }) => status === 422)
    expect([done.length, refused.length]).toEqual([14, 36])
    expect(await find(id)).toMatchObject({ status: 'partially_captured', amount_captured: 980 })
    const journal = await sandbox.gateway.journal()
    const captured = journal.filter(
      ({ kind, payment_intent: paymentIntent }) =>
        kind === 'capture' && paymentIntent === attempts[0].gateway_id,
    )
    expect(captured.reduce((sum, { amount }) => sum + amount, 0)).toBe(980)
  })

  it('is captured in parts at once, and none lets go of what another takes', async () => {
    const { id } = await pay(HELD)
    const finishFirst = await captureUnderWay(id, 1_200)
    expect((await capture(id, { amount: 3_000 })).body).toMatchObject({ status: 'partially_captured' })
    expect((await finishFirst()).body).toMatchObject({ status: 'succeeded', amount_captured: 4_200 })
  })

  it('in three decimals is captured and refunded in the steps that processors take', async () => {
    const { id } = await pay({ ...HELD, currency: 'kwd' })
    const refusal = { status: 400, code: 'invalid_request', field: 'amount' }
    expect((await capture(id, { amount: 1_005 })).body).toMatchObject(refusal)
    expect((await capture(id, { amount: 1_000, final: true })).body).toMatchObject({ amount_captured: 1_000 })
    expect((await refund(id, { amount: 7 })).body).toMatchObject(refusal)
    expect((await refund(id, { amount: 10 })).body).toMatchObject({ amount: 10, currency: 'KWD' })
  })

  it('is let go of when it is canceled, and captured no more', async () => {
    const before = await balanceOf()
    const { id } = await pay(HELD)
    expect((await cancel(id, { reason: 'duplicate' })).body).toMatchObject({ status: 'canceled' })
    expect((await capture(id)).body).toMatchObject({ code: 'payment_state', payment_status: 'canceled' })
    expect((await cancel(id)).body.code).toBe('payment_state')
    expect(await balanceOf()).toEqual(before)
  })

  it('and captured in part keeps that part when the rest is canceled', async () => {
    const before = await balanceOf()
    const { id } = await pay(HELD)
    await capture(id, { amount: 200 })
    const { body } = await cancel(id)
    expect(body).toMatchObject({ status: 'succeeded', amount_captured: 200, amount_capturable: 0 })
    const after = await balanceOf()
    expect([after.available - before.available, after.pending - before.pending]).toEqual([200, 0])
  })

  it('expires when nobody captures it in time', async () => {
    const before = await balanceOf()
    const { id } = await pay(HELD)
    await runOut(id)
    expect(await expirer(shop.service).runOnce()).toMatchObject({ done: 1 })
    expect(await find(id)).toMatchObject({ status: 'expired', capture_before: null })
    expect(await expirer(shop.service).runOnce()).toMatchObject({ done: 0 })
    expect(await balanceOf()).toEqual(before)
  })

  it('expires after a capture that was under way when its time was over', async () => {
    const { id } = await pay(HELD)
    const finish = await captureUnderWay(id, 1_200)
    const key = await runOut(id)
    const { once, operations } = shop.service
    const expire = () =>
      once.run(operations.expirePayment, { account: shop.account, key, input: { payment: id } })
    await expect(expire()).rejects.toThrow()
    expect(await expirer(shop.service).runOnce()).toMatchObject({ done: 0 })
    await finish()
    expect(await expirer(shop.service).runOnce()).toMatchObject({ done: 1 })
    expect(await find(id)).toMatchObject({ status: 'succeeded', amount_captured: 1_200 })
  })
})

/** Until when it was held is over. The key under which a worker lets go of it then. */
async function runOut(id: string): Promise<string> {
  const { rows } = await shop.service.pool.query(
    `UPDATE payments.payments SET capture_before = date_trunc('second', now() - interval '1 second')
     WHERE account = $1 AND id = $2 RETURNING capture_before`,
    [shop.account, id],
  )
  return `expire:${id}:${rows[0].capture_before.toISOString()}`
}

describe('a refund', () => {
  it('gives back parts, and never more than was taken', async () => {
    const before = await balanceOf()
    const { id } = await pay()
    const first = await refund(id, {
      amount: 1_000,
      reason: 'requested_by_customer',
      metadata: { why: 'cold' },
    })
    expect(first.status).toBe(201)
    expect(first.body).toMatchObject({ object: 'refund', payment: id, amount: 1_000, status: 'succeeded' })
    expect((await refund(id, { amount: 3_201 })).body).toMatchObject({
      code: 'amount_too_large',
      amount_refundable: 3_200,
    })
    expect((await refund(id)).body).toMatchObject({ amount: 3_200 })
    expect((await refund(id)).body.code).toBe('amount_too_large')
    expect(await find(id)).toMatchObject({ status: 'succeeded', amount_refunded: 4_200 })
    expect(await balanceOf()).toEqual(before)
    const { body } = await shop.ask(`/v1/payments/${id}/refunds?limit=1`)
    expect(body).toMatchObject({ data: [{ amount: 3_200 }], has_more: true })
    const next = await shop.ask(`/v1/payments/${id}/refunds?cursor=${body.next_cursor}`)
    expect(next.body).toMatchObject({ data: [first.body], has_more: false })
    const location = first.headers.get('location')!
    expect((await shop.ask(location)).body).toEqual(first.body)
    const { apiKey } = await shop.addCaller()
    expect((await shop.ask(location, { apiKey })).status).toBe(404)
  })

  it('is one of at most so many, of fifty at once', async () => {
    const { id } = await pay({ ...TEA, amount: 1_000 })
    const all = await Promise.all(Array.from({ length: 50 }, () => refund(id, { amount: 90 })))
    expect(all.filter(({ status }) => status === 201)).toHaveLength(11)
    expect(all.filter(({ status }) => status === 422)).toHaveLength(39)
    expect(await find(id)).toMatchObject({ amount_refunded: 990 })
  })
})

describe('a transfer', () => {
  it('is told as it was answered, to its sender alone', async () => {
    await pay()
    const { accountId: destination, apiKey } = await shop.addCaller()
    const sent = await shop.post('/v1/transfers', { destination, amount: 100, currency: 'eur' })
    expect([sent.status, sent.body.status, sent.body.amount]).toEqual([201, 'succeeded', 100])
    const location = sent.headers.get('location')!
    expect((await shop.ask(location)).body).toEqual(sent.body)
    expect((await shop.ask(location, { apiKey })).status).toBe(404)
  })
})

describe('a list of payments', () => {
  it('is that of the account, by status, reference, metadata and time, page by page', async () => {
    const { apiKey } = await shop.addCaller()
    const send = (body: object) => shop.post('/v1/payments', body, { apiKey })
    const ids: string[] = []
    for (let i = 0; i < 5; i += 1) {
      const { body } = await send({ ...TEA, reference: `r-${i % 2}`, metadata: { table: `${i}` } })
      ids.unshift(body.id)
    }
    await send({ ...TEA, payment_method: 'pm_card_chargeDeclined' })
    const list = async (query: string) => (await shop.ask(`/v1/payments?${query}`, { apiKey })).body
    const idsOf = async (query: string) => (await list(query)).data.map(({ id }: { id: string }) => id)
    expect(await idsOf('status=succeeded')).toEqual(ids)
    expect(await idsOf('status=failed')).toHaveLength(1)
    expect(await idsOf('reference=r-1')).toEqual([ids[1], ids[3]])
    expect(await idsOf('metadata[table]=3')).toEqual([ids[1]])
    expect(await idsOf('metadata[table]=9')).toEqual([])
    const { created_at: createdAt } = await find2(ids[1]!)
    expect(await idsOf(`status=succeeded&created_from=${createdAt}`)).toEqual([ids[0], ids[1]])
    expect(await idsOf(`created_to=${createdAt}`)).toEqual(ids.slice(2))
    const first = await list('status=succeeded&limit=3')
    expect(first.has_more).toBe(true)
    expect(await idsOf(`status=succeeded&limit=3&cursor=${first.next_cursor}`)).toEqual(ids.slice(3))
    for (const bad of ['status=paid', 'limit=0', 'cursor=made-up', 'created_from=yesterday', 'color=red']) {
      expect(await list(bad)).toMatchObject({ status: 400, code: 'invalid_request' })
    }
    async function find2(id: string) {
      return (await shop.ask(`/v1/payments/${id}`, { apiKey })).body
    }
  })
})
