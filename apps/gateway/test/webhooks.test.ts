import Stripe from 'stripe'
import { afterEach, describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import { failureOf, HELD_TEA, newKey, openGateway, openReceiver, TEA } from './under-test.ts'

const SECRET = 'whsec_of_a_test'
const WEEK_MS = 7 * 24 * 60 * 60 * 1_000

const { received, statuses, url } = await openReceiver()
const { gateway, stripe } = await openGateway({ webhook: { url, secret: SECRET } })

const types = () => received.map(({ event }) => event.type)
const keys = () => received.map(({ event }) => event.request?.idempotency_key)
const settled = (pending = 0) =>
  waitUntil('all was told', async () => (await gateway.state()).webhooks.pending === pending)

afterEach(() => {
  received.length = 0
})

describe('webhooks', () => {
  it('tell of every movement, signed', async () => {
    const key = newKey()
    const paid = await stripe.paymentIntents.create(TEA, { idempotencyKey: key })
    await settled()
    const held = await stripe.paymentIntents.create(HELD_TEA)
    await settled()
    await stripe.paymentIntents.capture(held.id, { amount_to_capture: 100, final_capture: false })
    await settled()
    await stripe.paymentIntents.capture(held.id)
    await settled()
    await stripe.refunds.create({ payment_intent: paid.id, amount: 100 })
    await settled()
    const paymentMethod = 'pm_card_chargeDeclined'
    const { payment_intent: paymentIntent } = await failureOf(
      stripe.paymentIntents.create({ ...TEA, payment_method: paymentMethod }),
    )
    await settled()
    await stripe.paymentIntents.cancel(paymentIntent!.id)
    await settled()
    expect(types().sort()).toEqual(
      [
        'payment_intent.succeeded',
        'payment_intent.amount_capturable_updated',
        'charge.captured',
        'payment_intent.amount_capturable_updated',
        'charge.captured',
        'payment_intent.succeeded',
        'refund.created',
        'charge.refunded',
        'payment_intent.payment_failed',
        'payment_intent.canceled',
      ].sort(),
    )
    for (const { body, signature, event } of received) {
      expect(stripe.webhooks.constructEvent(body, signature, SECRET)).toEqual(event)
      expect(() => stripe.webhooks.constructEvent(body, signature, 'whsec_other')).toThrow(
        Stripe.errors.StripeSignatureVerificationError,
      )
      expect(await stripe.events.retrieve(event.id)).toEqual(event)
    }
    const [first] = received
    expect(first!.event).toMatchObject({
      object: 'event',
      livemode: false,
      data: { object: paid },
      request: { id: paid.lastResponse.requestId, idempotency_key: key },
    })
    // A replay is no news.
    await stripe.paymentIntents.create(TEA, { idempotencyKey: key })
    await settled()
    expect(received).toHaveLength(10)
  })

  it('are sent again until somebody takes them, and given up in the end', async () => {
    const before = (await gateway.state()).webhooks
    const refused = (tries: number) =>
      waitUntil(
        'it was refused',
        async () => (await gateway.state()).webhooks.failed >= before.failed + tries,
      )
    statuses.push(500, 404)
    await stripe.paymentIntents.create(TEA)
    for (const tries of [1, 2]) {
      await refused(tries)
      await gateway.advance(60_000)
    }
    await settled()
    expect(received).toHaveLength(3)
    expect(new Set(received.map(({ event }) => event.id)).size).toBe(1)
    statuses.push(500, 500, 500, 500)
    await stripe.paymentIntents.create(TEA)
    for (const tries of [3, 4, 5, 6]) {
      await refused(tries)
      await gateway.advance(60_000)
    }
    await settled()
    expect(received).toHaveLength(7)
    const { delivered, given_up: givenUp } = before
    expect((await gateway.state()).webhooks).toMatchObject({
      delivered: delivered + 1,
      given_up: givenUp + 1,
    })
  })

  it('are lost, doubled, overtaken or a week late when told so', async () => {
    const pay = (key: string) => stripe.paymentIntents.create(TEA, { idempotencyKey: key })
    await gateway.fault(
      { fault: 'webhook_lost', key: 'lost' },
      { fault: 'webhook_doubled', key: 'doubled' },
      { fault: 'webhook_late', key: 'late' },
      { fault: 'webhook_reordered', key: 'overtaken' },
    )
    for (const key of ['late', 'lost', 'doubled']) await pay(key)
    await settled(1)
    expect(keys()).toEqual(['doubled', 'doubled'])
    expect(received[1]!.event).toEqual(received[0]!.event)
    expect((await gateway.state()).webhooks.lost).toBe(1)
    await pay('overtaken')
    await pay('overtaking')
    await settled(1)
    expect(keys().slice(2)).toEqual(['overtaking', 'overtaken'])
    await gateway.advance(WEEK_MS - 60_000)
    expect(keys()).not.toContain('late')
    await gateway.advance(60_000)
    await settled()
    expect(keys().at(-1)).toBe('late')
    const { body, signature, event } = received.at(-1)!
    // Signed when it was sent, not when it happened.
    expect(stripe.webhooks.constructEvent(body, signature, SECRET)).toEqual(event)
  })

  it('that nobody took before a crash are sent after it', async () => {
    await gateway.fault({ fault: 'webhook_late', ms: 3_600_000, key: 'untold' })
    await stripe.paymentIntents.create(TEA, { idempotencyKey: 'untold' })
    await stripe.paymentIntents.create(TEA, { idempotencyKey: 'told' })
    await settled(1)
    await gateway.restart()
    await stripe.paymentIntents.create(TEA, { idempotencyKey: 'next' })
    await settled(1)
    expect(keys()).toEqual(['told', 'next'])
    await gateway.advance(3_600_000)
    await settled()
    expect(keys()).toEqual(['told', 'next', 'untold'])
    // What is over is over, also after another restart.
    await gateway.restart()
    await stripe.paymentIntents.create(TEA, { idempotencyKey: 'last' })
    await settled()
    expect(keys().slice(3)).toEqual(['last'])
  })

  it('tell of an authorization that ran out', async () => {
    await stripe.paymentIntents.create(HELD_TEA)
    await settled()
    await gateway.advance(WEEK_MS)
    await settled()
    expect(types()).toEqual(['payment_intent.amount_capturable_updated', 'payment_intent.canceled'])
  })
})
