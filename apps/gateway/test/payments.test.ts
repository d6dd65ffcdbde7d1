import { describe, expect, it } from 'vitest'
import { failureOf, failuresOf, HELD_TEA, movedBy, newKey, openGateway, stripeOf, TEA } from './under-test.ts'

const { gateway, stripe } = await openGateway()
const DAY_S = 24 * 60 * 60

describe('a payment intent', () => {
  it('takes money at once, and is shown as Stripe shows it', async () => {
    const key = newKey()
    const metadata = { payment: 'pay_1', 'order no.': 'Ö & 1/2 = [x]' }
    const intent = await stripe.paymentIntents.create(
      { ...TEA, currency: 'EUR', metadata, description: 'Tea + biscuits', off_session: true },
      { idempotencyKey: key },
    )
    expect(intent).toMatchObject({
      object: 'payment_intent',
      amount: 4200,
      amount_received: 4200,
      amount_capturable: 0,
      currency: 'eur',
      status: 'succeeded',
      description: 'Tea + biscuits',
      payment_method: 'pm_card_visa',
      last_payment_error: null,
      livemode: false,
      metadata,
    })
    expect(intent.id).toMatch(/^pi_\w{24}$/)
    expect(intent.latest_charge).toMatch(/^ch_\w{24}$/)
    expect(intent.lastResponse.requestId).toMatch(/^req_/)
    expect(Math.abs(intent.created - Date.now() / 1_000)).toBeLessThan(60)
    expect(await stripe.paymentIntents.retrieve(intent.id)).toEqual(intent)
    const [entry] = (await gateway.journal()).filter((entry) => entry.key === key)
    expect(entry).toMatchObject({
      kind: 'capture',
      payment_intent: intent.id,
      amount: 4200,
      currency: 'eur',
      metadata,
      request: intent.lastResponse.requestId,
    })
  })

  it('tells the whole charge to those who ask for it', async () => {
    const expand = ['latest_charge']
    const held = await stripe.paymentIntents.create({ ...HELD_TEA, expand })
    expect(held.latest_charge).toMatchObject({
      object: 'charge',
      amount: 4200,
      amount_captured: 0,
      captured: false,
      payment_intent: held.id,
      payment_method_details: {
        card: { brand: 'visa', last4: '4242', capture_before: held.created + 7 * DAY_S },
      },
    })
    const found = await stripe.paymentIntents.retrieve(held.id, { expand })
    expect(found.latest_charge).toEqual(held.latest_charge)
    const taken = await stripe.paymentIntents.create({ ...TEA, payment_method: 'pm_card_mastercard', expand })
    expect(taken.latest_charge).toMatchObject({
      captured: true,
      payment_method_details: { card: { brand: 'mastercard' } },
    })
  })

  it('holds money, and takes it in parts up to what is held', async () => {
    const { id } = await stripe.paymentIntents.create({ ...HELD_TEA, metadata: { a: '1', b: '2' } })
    const first = await stripe.paymentIntents.capture(id, {
      amount_to_capture: 1000,
      final_capture: false,
      metadata: { b: '', c: '3' },
    })
    expect(first).toMatchObject({
      status: 'requires_capture',
      amount_capturable: 3200,
      amount_received: 1000,
      metadata: { a: '1', c: '3' },
    })
    const key = newKey()
    const more = stripe.paymentIntents.capture(id, { amount_to_capture: 3201 }, { idempotencyKey: key })
    expect(await failureOf(more)).toMatchObject({
      type: 'StripeInvalidRequestError',
      statusCode: 400,
      code: 'amount_too_large',
      param: 'amount_to_capture',
    })
    expect(await movedBy(gateway, key)).toEqual([])
    const last = await stripe.paymentIntents.capture(id, { amount_to_capture: 200 })
    expect(last).toMatchObject({ status: 'succeeded', amount_capturable: 0, amount_received: 1200 })
    const late = await failureOf(stripe.paymentIntents.capture(id))
    expect(late).toMatchObject({ code: 'payment_intent_unexpected_state', payment_intent: { id } })
  })

  it('never takes more than is held, however many try at once', async () => {
    const { id } = await stripe.paymentIntents.create(HELD_TEA)
    const parts = Array.from({ length: 50 }, () =>
      stripe.paymentIntents
        .capture(id, { amount_to_capture: 100, final_capture: false })
        .then(() => 100)
        .catch(() => 0),
    )
    await Promise.all(parts)
    const { amount_received: amountReceived } = await stripe.paymentIntents.retrieve(id)
    expect(amountReceived).toBe(4200)
    const taken = (await gateway.journal()).filter((entry) => entry.payment_intent === id)
    expect(taken.map(({ kind }) => kind)).toEqual(['authorization', ...Array(42).fill('capture')])
  })

  it('lets go of what is held', async () => {
    const { id } = await stripe.paymentIntents.create(HELD_TEA)
    const key = newKey()
    const reason = { cancellation_reason: 'requested_by_customer' } as const
    const canceled = await stripe.paymentIntents.cancel(id, reason, { idempotencyKey: key })
    expect(canceled).toMatchObject({ status: 'canceled', amount_capturable: 0, ...reason })
    expect(canceled.canceled_at).toBeGreaterThan(0)
    expect(await movedBy(gateway, key)).toEqual(['void 4200'])
    const late = [stripe.paymentIntents.cancel(id), stripe.paymentIntents.capture(id)]
    for (const failure of await failuresOf(late)) {
      expect(failure).toMatchObject({ code: 'payment_intent_unexpected_state' })
    }
    const { id: paid } = await stripe.paymentIntents.create(TEA)
    expect(await failureOf(stripe.paymentIntents.cancel(paid))).toMatchObject({ statusCode: 400 })
  })

  it('refuses what is no payment, by the name of what is wrong', async () => {
    const { create } = stripe.paymentIntents
    const wrong: [object, string, string?][] = [
      [{ colour: 'red' }, 'colour', 'parameter_unknown'],
      [{ amount: undefined }, 'amount', 'parameter_missing'],
      [{ amount: 0 }, 'amount', 'parameter_invalid_integer'],
      [{ amount: -5 }, 'amount', 'parameter_invalid_integer'],
      [{ amount: 1.5 }, 'amount', 'parameter_invalid_integer'],
      [{ amount: 'many' }, 'amount', 'parameter_invalid_integer'],
      [{ amount: { a: 1 } }, 'amount', 'parameter_invalid_integer'],
      [{ amount: 100_000_000 }, 'amount', 'amount_too_large'],
      [{ currency: 'xxz' }, 'currency'],
      [{ payment_method: undefined }, 'payment_method', 'parameter_missing'],
      [{ payment_method: 'pm_nobody' }, 'payment_method', 'resource_missing'],
      [{ confirm: false }, 'confirm'],
      [{ capture_method: 'sometimes' }, 'capture_method'],
      [{ metadata: 'text' }, 'metadata'],
      [{ metadata: { a: 'x'.repeat(501) } }, 'metadata[a]'],
      [{ description: '' }, 'description', 'parameter_invalid_empty'],
      [{ expand: ['customer'] }, 'expand'],
    ]
    const { movements } = await gateway.state()
    for (const [change, param, code] of wrong) {
      const failure = await failureOf(create.call(stripe.paymentIntents, { ...TEA, ...change }))
      expect(failure).toMatchObject({ type: 'StripeInvalidRequestError', statusCode: 400, param, code })
    }
    expect((await gateway.state()).movements).toEqual(movements)
  })
})

describe('a refund', () => {
  it('gives back what was taken, in parts, and never more', async () => {
    const { id, latest_charge: latestCharge } = await stripe.paymentIntents.create(TEA)
    const order = { payment_intent: id, reason: 'duplicate', metadata: { refund: 'ref_1' } } as const
    const key = newKey()
    const first = await stripe.refunds.create({ ...order, amount: 1200 }, { idempotencyKey: key })
    expect(first).toMatchObject({
      object: 'refund',
      amount: 1200,
      currency: 'eur',
      status: 'succeeded',
      payment_intent: id,
      charge: latestCharge,
      reason: 'duplicate',
      metadata: { refund: 'ref_1' },
    })
    expect(await stripe.refunds.retrieve(first.id)).toEqual(first)
    expect(await movedBy(gateway, key)).toEqual(['refund 1200'])
    const more = stripe.refunds.create({ payment_intent: id, amount: 3001 })
    expect(await failureOf(more)).toMatchObject({ code: 'amount_too_large', param: 'amount' })
    const rest = await stripe.refunds.create({ payment_intent: id })
    expect(rest.amount).toBe(3000)
    const again = stripe.refunds.create({ payment_intent: id, amount: 1 })
    expect(await failureOf(again)).toMatchObject({ code: 'charge_already_refunded', statusCode: 400 })
    const { latest_charge: charge } = await stripe.paymentIntents.retrieve(id, { expand: ['latest_charge'] })
    expect(charge).toMatchObject({ amount_refunded: 4200, refunded: true })
  })

  it('is not given for what was never taken', async () => {
    const { id } = await stripe.paymentIntents.create(HELD_TEA)
    expect(await failureOf(stripe.refunds.create({ payment_intent: id }))).toMatchObject({
      code: 'payment_intent_unexpected_state',
    })
    await stripe.paymentIntents.capture(id, { amount_to_capture: 100, final_capture: false })
    expect((await stripe.refunds.create({ payment_intent: id })).amount).toBe(100)
    expect(await failureOf(stripe.refunds.create({ payment_intent: 'pi_none' }))).toMatchObject({
      code: 'resource_missing',
      param: 'payment_intent',
      statusCode: 400,
    })
  })
})

describe('the door', () => {
  it('opens to one key only', async () => {
    const stranger = stripeOf(gateway, 'sk_test_other')
    expect(await failureOf(stranger.paymentIntents.create(TEA))).toMatchObject({
      type: 'StripeAuthenticationError',
      statusCode: 401,
    })
    const response = await fetch(`${gateway.url}/v1/payment_intents`)
    expect(response.status).toBe(401)
    expect(response.headers.get('request-id')).toMatch(/^req_/)
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
    const authorization = `Basic ${btoa(`${gateway.apiKey}:`)}`
    expect((await fetch(`${gateway.url}/v1/refunds`, { headers: { authorization } })).status).toBe(200)
  })

  it('knows what it does not know', async () => {
    expect(await failureOf(stripe.customers.create())).toMatchObject({ statusCode: 404 })
    const looks = [stripe.paymentIntents.retrieve('pi_none'), stripe.refunds.retrieve('re_none')]
    for (const failure of await failuresOf(looks)) {
      expect(failure).toMatchObject({ statusCode: 404, code: 'resource_missing' })
    }
    const capture = stripe.paymentIntents.capture('pi_none')
    expect(await failureOf(capture)).toMatchObject({ statusCode: 404, code: 'resource_missing' })
    const post = (body: string) =>
      fetch(`${gateway.url}/v1/payment_intents`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.apiKey}` },
        body,
      })
    for (const body of ['amount=%FF', 'a[[=1', '{"amount":1}', 'a[b][c][d][e][f]=1']) {
      expect((await post(body)).status).toBe(400)
    }
    expect((await post('a'.repeat(70_000))).status).toBe(413)
    expect((await stripe.paymentIntents.create(TEA)).status).toBe('succeeded')
  })
})
