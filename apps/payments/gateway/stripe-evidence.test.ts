import type Stripe from 'stripe'
import { describe, expect, it } from 'vitest'
import {
  type Changes,
  cardError,
  ENTRY,
  held,
  intent,
  KEY,
  OTHER_KEY,
  partly,
  refund,
} from '../test/stripe-objects.ts'
import { evidenceOf } from './stripe.ts'

function event(type: string, object: Changes, idempotencyKey: string | null = null): Stripe.Event {
  const request = { id: 'req_1', idempotency_key: idempotencyKey }
  return {
    id: 'evt_1',
    object: 'event',
    type,
    livemode: false,
    data: { object },
    request,
  } as unknown as Stripe.Event
}

const OURS = intent().metadata

describe('evidence', () => {
  it.each<[string, Changes, object]>([
    [
      'payment_intent.succeeded',
      intent(),
      { status: 'captured', gateway_id: 'pi_1', amount: 1_000, currency: 'EUR', capture_before: null },
    ],
    [
      'payment_intent.amount_capturable_updated',
      held(),
      { status: 'authorized', capture_before: '2023-11-21T22:13:20.000Z' },
    ],
    [
      'payment_intent.payment_failed',
      intent({
        status: 'requires_payment_method',
        amount_received: 0,
        last_payment_error: cardError().error,
      }),
      {
        status: 'declined',
        code: 'card_declined',
        decline_code: 'insufficient_funds',
        advice: 'try_again_later',
        gateway_id: 'pi_1',
      },
    ],
    ['refund.created', refund(), { status: 'refunded', gateway_id: 're_1', amount: 300, currency: 'EUR' }],
    ['refund.failed', refund({ status: 'failed' }), { status: 'declined', code: 'refund_failed' }],
  ])('of a call by the key in the metadata: %s', (type, object, result) => {
    expect(evidenceOf(event(type, object))).toEqual([
      { account: 'acct_1:test', key: KEY, result: expect.objectContaining(result) },
    ])
  })

  it('of a capture by its entry, which says nothing about the authorization any more', () => {
    const result = { status: 'captured', gateway_id: 'pi_1', amount: 400, currency: 'EUR' }
    for (const type of ['payment_intent.amount_capturable_updated', 'payment_intent.succeeded']) {
      const status = type.endsWith('succeeded') ? 'succeeded' : 'requires_capture'
      expect(evidenceOf(event(type, partly({ status })))).toEqual([
        { account: 'acct_1:test', key: KEY, result },
      ])
    }
  })

  it('of several captures at once', () => {
    const metadata = {
      onlyonce_key: 'first',
      account: 'acct_1:test',
      [ENTRY]: `400 cap_1 ${KEY}`,
      [`capture_${OTHER_KEY.slice(0, 30)}`]: `600 cap_2 ${OTHER_KEY}`,
    }
    const all = event(
      'payment_intent.succeeded',
      partly({ status: 'succeeded', amount_received: 1_000, metadata }),
    )
    expect(evidenceOf(all).map(({ key, result }) => [key, 'amount' in result && result.amount])).toEqual([
      [KEY, 400],
      [OTHER_KEY, 600],
    ])
  })

  it('of a void by the key of the request', () => {
    const canceled = held({ status: 'canceled', amount_capturable: 0 })
    expect(evidenceOf(event('payment_intent.canceled', canceled, OTHER_KEY))).toEqual([
      { account: 'acct_1:test', key: OTHER_KEY, result: { status: 'voided', gateway_id: 'pi_1' } },
    ])
  })

  it.each<[string, string, Changes, (string | null)?]>([
    [
      'an intent of nobody',
      'payment_intent.succeeded',
      intent({ metadata: { ...OURS, account: undefined } }),
    ],
    [
      'a test object that names a live account',
      'payment_intent.succeeded',
      intent({ metadata: { ...OURS, account: 'acct_1:live' } }),
    ],
    ['an intent of somebody else', 'payment_intent.succeeded', intent({ metadata: {} })],
    ['an intent that is under way', 'payment_intent.succeeded', intent({ status: 'processing' })],
    [
      'an intent that waits for its customer',
      'payment_intent.requires_action',
      intent({ status: 'requires_action', amount_received: 0 }),
    ],
    ['an intent that contradicts itself', 'payment_intent.succeeded', intent({ amount_received: 999 })],
    [
      'what was held, and taken by nobody of ours',
      'payment_intent.succeeded',
      held({ status: 'succeeded', amount_received: 1_000 }),
    ],
    [
      'captures that are not what was taken',
      'payment_intent.succeeded',
      partly({ status: 'succeeded', amount_received: 500 }),
    ],
    [
      'an entry under another name',
      'payment_intent.succeeded',
      partly({ metadata: { ...OURS, capture_x: `400 cap_1 ${KEY}` }, amount_received: 400 }),
    ],
    ['a cancellation that nobody asked for', 'payment_intent.canceled', held({ status: 'canceled' })],
    [
      'a cancellation by the authorization itself',
      'payment_intent.canceled',
      held({ status: 'canceled' }),
      KEY,
    ],
    [
      'a cancellation of what is not ours',
      'payment_intent.canceled',
      held({ status: 'canceled', metadata: {} }),
      OTHER_KEY,
    ],
    ['a refund under way', 'refund.created', refund({ status: 'pending' })],
    ['a refund of somebody else', 'refund.created', refund({ metadata: null })],
    ['a charge', 'charge.captured', { object: 'charge', metadata: OURS }],
    ['an object that is none', 'payment_intent.succeeded', {}],
  ])('is not %s', (_, type, object, key = null) => {
    expect(evidenceOf(event(type, object, key))).toEqual([])
  })

  it.each([undefined, null, {}, { object: null }])('is not an event without an object: %j', (data) => {
    expect(evidenceOf({ ...event('v2.core.event', {}, null), data } as never)).toEqual([])
  })
})
