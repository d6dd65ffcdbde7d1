import { OnlyonceError } from 'onlyonce'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { answer, type Script, type ScriptedServer, startScriptedServer } from '../test/scripted-server.ts'
import {
  apiError,
  CAPTURE,
  cardError,
  HELD,
  held,
  intent,
  KEY,
  ORDER,
  OTHER_KEY,
  partly,
  REFUND,
  refund,
} from '../test/stripe-objects.ts'
import type { Gateway } from './index.ts'
import { type StripeOptions, stripeGateway } from './stripe.ts'

const SECRET_KEY = 'sk_test_1234567890abcdef'
let server: ScriptedServer
let gateway: Gateway

beforeAll(async () => {
  server = await startScriptedServer(() => undefined)
  gateway = open()
})
beforeEach(() => {
  server.seen.length = 0
})

function open(changes: Partial<StripeOptions> = {}): Gateway {
  const { port } = server
  return stripeGateway({
    secretKey: SECRET_KEY,
    mode: 'test',
    host: '127.0.0.1',
    protocol: 'http',
    port,
    ...changes,
  })
}

const context = () => ({ key: KEY, signal: new AbortController().signal })

/** How a call ends: its result, or what kind of error it is, and what that says. */
async function endOf(call: Promise<unknown>): Promise<{ is: string; why?: string; result?: unknown }> {
  try {
    return { is: 'result', result: await call }
  } catch (error) {
    if (!(error instanceof OnlyonceError)) return { is: 'in_doubt', why: (error as Error).message }
    return { is: error.code, why: (error.cause as Error).message }
  }
}

async function authorizeBy(script: Script | string, order = ORDER, by = gateway) {
  server.script = typeof script === 'string' ? () => script : script
  const end = await endOf(by.authorize(order, context()))
  expect(end.why ?? '').not.toMatch(/sk_test|4242/)
  return end
}

describe('what is sent', () => {
  it('has the derived key as idempotency key and in the metadata, once, without telemetry', async () => {
    server.script = () => answer(200, intent())
    expect(await gateway.authorize(ORDER, context())).toEqual({
      status: 'captured',
      gateway_id: 'pi_1',
      amount: 1_000,
      currency: 'EUR',
      capture_before: null,
    })
    expect(server.seen).toHaveLength(1)
    const { method, path, headers, body } = server.seen[0]!
    expect([method, path]).toEqual(['POST', '/v1/payment_intents'])
    expect(headers['idempotency-key']).toBe(KEY)
    expect(headers['stripe-version']).toBe('2026-10-28.endive')
    expect(headers.authorization).toBe(`Bearer ${SECRET_KEY}`)
    expect(headers).not.toHaveProperty('x-stripe-client-telemetry')
    expect(Object.fromEntries(body)).toMatchObject({
      amount: '1000',
      currency: 'eur',
      payment_method: 'pm_card_visa',
      capture_method: 'automatic',
      confirm: 'true',
      error_on_requires_action: 'true',
      'metadata[onlyonce_key]': KEY,
      'metadata[account]': 'acct_1:test',
      'metadata[payment]': 'pay_1',
      'metadata[reference]': 'order 7',
    })
  })

  it('goes over one connection', async () => {
    server.script = () => answer(200, intent())
    await gateway.authorize(ORDER, context())
    const before = server.connections()
    for (let call = 0; call < 5; call += 1) await gateway.authorize(ORDER, context())
    expect(server.connections()).toBe(before)
  })

  it('leaves the entry of a capture in the payment intent, and says so where more is to come', async () => {
    server.script = () => answer(200, partly())
    expect(await gateway.capture(CAPTURE, context())).toEqual({
      status: 'captured',
      gateway_id: 'pi_1',
      amount: 400,
      currency: 'EUR',
    })
    const [first] = server.seen
    expect(first!.path).toBe('/v1/payment_intents/pi_1/capture')
    expect(first!.headers['idempotency-key']).toBe(KEY)
    expect(Object.fromEntries(first!.body)).toEqual({
      amount_to_capture: '400',
      final_capture: 'false',
      'metadata[capture_GGoDxo6kbjdkhwOO3wkAu9EYGjnG0d]': `400 cap_1 ${KEY}`,
    })
    await gateway.capture({ ...CAPTURE, final: true }, context())
    expect(server.seen[1]!.body.has('final_capture')).toBe(false)
  })

  it('cancels and refunds', async () => {
    server.script = () => answer(200, held({ status: 'canceled' }))
    const order = { gateway_id: 'pi_1', reason: 'abandoned' } as const
    expect(await gateway.void(order, context())).toEqual({ status: 'voided', gateway_id: 'pi_1' })
    // The rest of what was taken in part.
    server.script = () => answer(200, partly({ status: 'succeeded', amount_capturable: 0 }))
    expect(await gateway.void(order, context())).toEqual({ status: 'voided', gateway_id: 'pi_1' })
    server.script = () => answer(200, refund())
    expect(await gateway.refund(REFUND, context())).toEqual({
      status: 'refunded',
      gateway_id: 're_1',
      amount: 300,
      currency: 'EUR',
    })
    const [cancel, , back] = server.seen
    expect([cancel!.path, cancel!.body.get('cancellation_reason')]).toEqual([
      '/v1/payment_intents/pi_1/cancel',
      'abandoned',
    ])
    expect(Object.fromEntries(back!.body)).toEqual({
      payment_intent: 'pi_1',
      amount: '300',
      'metadata[onlyonce_key]': KEY,
      'metadata[account]': 'acct_1:test',
      'metadata[refund]': 'ref_1',
    })
  })
})

describe('results', () => {
  it('hold money until Stripe says', async () => {
    const latestCharge = { id: 'ch_1', payment_method_details: { card: { capture_before: 1_700_400_000 } } }
    const { result } = await authorizeBy(answer(200, held({ latest_charge: latestCharge })), HELD)
    expect(result).toMatchObject({ status: 'authorized', capture_before: '2023-11-19T13:20:00.000Z' })
    const { result: silent } = await authorizeBy(answer(200, held()), HELD)
    expect(silent).toMatchObject({ status: 'authorized', capture_before: '2023-11-21T22:13:20.000Z' })
  })

  it.each([
    [
      'a card error',
      402,
      cardError(),
      {
        code: 'card_declined',
        decline_code: 'insufficient_funds',
        advice: 'try_again_later',
        gateway_id: 'pi_1',
        message: 'Your card has insufficient funds.',
      },
    ],
    [
      'one without an intent',
      402,
      cardError({ payment_intent: undefined, decline_code: undefined, advice_code: undefined }),
      { gateway_id: null, decline_code: null, advice: null },
    ],
    [
      'one that tells too much',
      402,
      cardError({ message: 'Card 4242 4242 4242 4242 by sk_test_1 is bad' }),
      { message: 'Card [number] by [key] is bad' },
    ],
    [
      'an authentication that is required',
      402,
      cardError({ code: 'authentication_required' }),
      { code: 'authentication_required' },
    ],
    [
      'an intent that waits for the customer',
      200,
      intent({ status: 'requires_action', amount_received: 0 }),
      { code: 'authentication_required', gateway_id: 'pi_1' },
    ],
    [
      'an intent with an error',
      200,
      intent({
        status: 'requires_payment_method',
        last_payment_error: { code: 'expired_card', message: 'Expired.' },
      }),
      { code: 'expired_card', message: 'Expired.' },
    ],
    [
      'a token that does not exist',
      404,
      apiError({ code: 'resource_missing', param: 'payment_method' }),
      { code: 'payment_method_invalid', gateway_id: null },
    ],
    [
      'the same by 400',
      400,
      apiError({ code: 'resource_missing', param: 'payment_method' }),
      { code: 'payment_method_invalid' },
    ],
    [
      'an amount that is too small',
      400,
      apiError({ code: 'amount_too_small', param: 'amount' }),
      { code: 'amount_too_small' },
    ],
    ['a currency that it does not take', 400, apiError({ param: 'currency' }), { code: 'currency_invalid' }],
  ])('are declines: %s', async (_, status, body, expected) => {
    const end = await authorizeBy(answer(status, body))
    expect(end).toMatchObject({ is: 'result', result: { status: 'declined', ...expected } })
    expect(server.seen).toHaveLength(1)
  })
})

describe('proved not executed', () => {
  it.each([
    ['429', answer(429, apiError({ code: 'rate_limit' }))],
    ['a lock that was not given', answer(429, apiError({ code: 'lock_timeout' }))],
    ['401', answer(401, apiError({ message: `Invalid API Key provided: ${SECRET_KEY}` }))],
    ['403', answer(403, apiError({}))],
  ])('%s', async (_, bytes) => {
    expect(await authorizeBy(bytes)).toMatchObject({ is: 'not_executed' })
    expect(server.seen).toHaveLength(1)
  })

  it('a port where nobody listens, a name that nobody has, a handshake that fails', async () => {
    const free = await startScriptedServer(() => undefined)
    const nobody = open({ port: 1 })
    expect(await authorizeBy('', ORDER, nobody)).toMatchObject({
      is: 'not_executed',
      why: expect.stringContaining('ECONNREFUSED'),
    })
    const nameless = open({ host: 'nobody.invalid', protocol: 'https', timeoutMs: 5_000 })
    expect(await authorizeBy('', ORDER, nameless)).toMatchObject({ is: 'not_executed' })
    // It speaks no TLS: the request itself never leaves.
    free.script = () => 'HTTP/1.1 400 No\r\n\r\n'
    const plain = open({ protocol: 'https', port: free.port, timeoutMs: 1_000 })
    expect(await authorizeBy('', ORDER, plain)).toMatchObject({ is: 'not_executed' })
    expect(free.seen).toEqual([])
  })

  it('a call that is given up before it is made', async () => {
    const signal = AbortSignal.abort()
    expect(await endOf(gateway.authorize(ORDER, { key: KEY, signal }))).toMatchObject({ is: 'not_executed' })
    expect(server.seen).toEqual([])
  })
})

describe('refused for good', () => {
  it.each([
    ['a parameter that it does not know', 400, apiError({ code: 'parameter_unknown', param: 'onlyonce' })],
    ['a request without a name', 400, apiError({})],
  ])('%s', async (_, status, body) => {
    const end = await authorizeBy(answer(status, body))
    expect(end).toMatchObject({ is: 'call_refused', why: expect.stringContaining('(request req_1)') })
  })

  it('an intent that does not exist', async () => {
    server.script = () => answer(404, apiError({ code: 'resource_missing', param: 'intent' }))
    expect(await endOf(gateway.capture(CAPTURE, context()))).toMatchObject({ is: 'call_refused' })
  })
})

describe('captures and voids of what is in another state', () => {
  const state = (paymentIntent: unknown) =>
    answer(400, apiError({ code: 'payment_intent_unexpected_state', payment_intent: paymentIntent }))

  it('are declined', async () => {
    server.script = () => state(held({ status: 'canceled' }))
    expect(await gateway.capture(CAPTURE, context())).toMatchObject({
      status: 'declined',
      code: 'payment_intent_unexpected_state',
      gateway_id: 'pi_1',
    })
    server.script = () => state(intent())
    expect(await gateway.void({ gateway_id: 'pi_1', reason: null }, context())).toMatchObject({
      status: 'declined',
    })
    server.script = () => answer(400, apiError({ param: 'final_capture' }))
    expect(await gateway.capture(CAPTURE, context())).toMatchObject({ code: 'partial_capture_unavailable' })
  })

  it('are done where that very call has brought it there', async () => {
    server.script = () => state(partly({ status: 'succeeded' }))
    expect(await gateway.capture(CAPTURE, context())).toMatchObject({ status: 'captured', amount: 400 })
    // The rest of what was taken in part is held no more when its time is over.
    for (const gone of [
      held({ status: 'canceled' }),
      partly({ status: 'succeeded', amount_capturable: 0 }),
    ]) {
      server.script = () => state(gone)
      expect(await gateway.void({ gateway_id: 'pi_1', reason: null }, context())).toMatchObject({
        status: 'voided',
      })
    }
    // Somebody else has taken it.
    server.script = () => state(partly({ status: 'succeeded', amount_capturable: 0, amount_received: 1_000 }))
    expect(await gateway.void({ gateway_id: 'pi_1', reason: null }, context())).toMatchObject({
      status: 'declined',
    })
  })

  it('are in doubt where the answer is about something else', async () => {
    server.script = () => answer(200, partly({ amount_received: 500 }))
    expect(await endOf(gateway.capture(CAPTURE, context()))).toMatchObject({ is: 'in_doubt' })
    server.script = () => answer(200, held())
    expect(await endOf(gateway.capture(CAPTURE, context()))).toMatchObject({ is: 'in_doubt' })
    expect(await endOf(gateway.void({ gateway_id: 'pi_1', reason: null }, context()))).toMatchObject({
      is: 'in_doubt',
    })
    server.script = () => answer(200, refund({ amount: 301 }))
    expect(await endOf(gateway.refund(REFUND, context()))).toMatchObject({ is: 'in_doubt' })
    server.script = () =>
      answer(402, cardError({ payment_intent: intent({ metadata: { onlyonce_key: OTHER_KEY } }) }))
    expect(await endOf(gateway.authorize(ORDER, context()))).toMatchObject({ is: 'in_doubt' })
  })

  it('are in doubt while a refund is under way, and declined where it failed', async () => {
    server.script = () => answer(200, refund({ status: 'pending' }))
    expect(await endOf(gateway.refund(REFUND, context()))).toMatchObject({ is: 'in_doubt' })
    server.script = () => answer(200, refund({ status: 'failed', failure_reason: 'lost_or_stolen_card' }))
    expect(await gateway.refund(REFUND, context())).toMatchObject({
      status: 'declined',
      code: 'refund_failed',
      decline_code: 'lost_or_stolen_card',
    })
  })
})
