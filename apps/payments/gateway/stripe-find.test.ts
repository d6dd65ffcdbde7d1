import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { answer, type ScriptedServer, startScriptedServer } from '../test/scripted-server.ts'
import {
  CAPTURE,
  HELD,
  held,
  intent,
  KEY,
  ORDER,
  OTHER_KEY,
  page,
  partly,
  REFUND,
  refund,
} from '../test/stripe-objects.ts'
import type { Gateway, Movement } from './index.ts'
import { type StripeOptions, stripeGateway } from './stripe.ts'

let server: ScriptedServer
let gateway: Gateway
let options: StripeOptions

beforeAll(async () => {
  server = await startScriptedServer(() => undefined)
  options = { secretKey: 'sk_test_1', mode: 'test', host: '127.0.0.1', protocol: 'http', port: server.port }
  gateway = stripeGateway(options)
})
beforeEach(() => {
  server.seen.length = 0
})

const context = () => ({ key: KEY, signal: new AbortController().signal })
const NOT_FOUND = { status: 'not_found' }
const PENDING = { status: 'pending' }

/** Search finds the first, and retrieving gives the second. */
function know(found: readonly unknown[], now: unknown = found[0]) {
  server.script = ({ path }) => answer(200, path.includes('/search') ? page(found) : now)
}

describe('an authorization', () => {
  it('is looked for by its key, and then read as it is now', async () => {
    know([held({ status: 'processing' })], held())
    expect(await gateway.findAuthorization(HELD, context())).toMatchObject({
      status: 'found',
      result: { status: 'authorized', gateway_id: 'pi_1', amount: 1_000, currency: 'EUR' },
    })
    const [search, retrieve] = server.seen.map(({ method, path }) => `${method} ${decodeURIComponent(path)}`)
    expect(search).toContain(`/v1/payment_intents/search?query=metadata['onlyonce_key']:'${KEY}'`)
    expect(retrieve).toMatch(/^GET \/v1\/payment_intents\/pi_1\?/)
    expect(server.seen[0]!.headers).not.toHaveProperty('idempotency-key')
  })

  it('is not found, pending, declined', async () => {
    know([])
    expect(await gateway.findAuthorization(ORDER, context())).toEqual(NOT_FOUND)
    know([intent({ metadata: { onlyonce_key: OTHER_KEY } })])
    expect(await gateway.findAuthorization(ORDER, context())).toEqual(NOT_FOUND)
    for (const status of ['processing', 'requires_confirmation', 'requires_payment_method']) {
      know([intent({ status, amount_received: 0 })])
      expect(await gateway.findAuthorization(ORDER, context())).toEqual(PENDING)
    }
    const lastPaymentError = { code: 'card_declined', decline_code: 'lost_card', message: 'Lost.' }
    know([intent({ status: 'requires_payment_method', last_payment_error: lastPaymentError })])
    expect(await gateway.findAuthorization(ORDER, context())).toMatchObject({
      result: { status: 'declined', decline_code: 'lost_card', gateway_id: 'pi_1' },
    })
    know([intent({ status: 'canceled', amount_received: 0 })])
    expect(await gateway.findAuthorization(ORDER, context())).toMatchObject({
      result: { code: 'payment_canceled' },
    })
  })

  it('is not told where it is not what was asked, is there twice, or nobody answers', async () => {
    know([intent({ amount: 999, amount_received: 999 })])
    await expect(gateway.findAuthorization(ORDER, context())).rejects.toThrow('not what was asked: amount')
    know([intent(), intent({ id: 'pi_2' })])
    await expect(gateway.findAuthorization(ORDER, context())).rejects.toThrow('pi_1, pi_2')
    server.script = () => answer(500, { error: { type: 'api_error' } })
    await expect(gateway.findAuthorization(ORDER, context())).rejects.toThrow('500')
  })
})

describe('captures, voids and refunds', () => {
  it('find a capture by the entry that it left', async () => {
    know([], partly())
    const found = {
      status: 'found',
      result: { status: 'captured', gateway_id: 'pi_1', amount: 400, currency: 'EUR' },
    }
    expect(await gateway.findCapture(CAPTURE, context())).toEqual(found)
    // Another one came after it.
    const { metadata } = partly() as { metadata: object }
    const both = { ...metadata, [`capture_${OTHER_KEY.slice(0, 30)}`]: `600 cap_2 ${OTHER_KEY}` }
    know([], partly({ status: 'succeeded', amount_received: 1_000, metadata: both }))
    expect(await gateway.findCapture(CAPTURE, context())).toEqual(found)
    know([], held())
    expect(await gateway.findCapture(CAPTURE, context())).toEqual(NOT_FOUND)
    know([], held({ status: 'processing' }))
    expect(await gateway.findCapture(CAPTURE, context())).toEqual(PENDING)
    know([], partly({ amount_received: 401 }))
    await expect(gateway.findCapture(CAPTURE, context())).rejects.toThrow('received')
  })

  it('find a void by the state', async () => {
    const order = { gateway_id: 'pi_1', reason: null }
    know([], held({ status: 'canceled' }))
    expect(await gateway.findVoid(order, context())).toEqual({
      status: 'found',
      result: { status: 'voided', gateway_id: 'pi_1' },
    })
    know([], partly({ status: 'succeeded', amount_capturable: 0 }))
    expect(await gateway.findVoid(order, context())).toMatchObject({ status: 'found' })
    for (const other of [held(), partly(), intent()]) {
      know([], other)
      expect(await gateway.findVoid(order, context())).toEqual(NOT_FOUND)
    }
    know([], held({ id: 'pi_2', status: 'canceled' }))
    await expect(gateway.findVoid(order, context())).rejects.toThrow('id')
  })

  it('find a refund among all of the payment, page by page', async () => {
    const others = [
      refund({ id: 're_7', metadata: {} }),
      refund({ id: 're_8', metadata: { onlyonce_key: OTHER_KEY } }),
    ]
    server.script = ({ path }) =>
      answer(200, path.includes('starting_after=re_8') ? page([refund()]) : page(others, true))
    expect(await gateway.findRefund(REFUND, context())).toMatchObject({
      result: { gateway_id: 're_1', amount: 300 },
    })
    expect(server.seen.map(({ path }) => path)).toEqual([
      '/v1/refunds?payment_intent=pi_1&limit=100',
      '/v1/refunds?payment_intent=pi_1&limit=100&starting_after=re_8',
    ])
    server.script = () => answer(200, page(others))
    expect(await gateway.findRefund(REFUND, context())).toEqual(NOT_FOUND)
    server.script = () => answer(200, page([refund({ status: 'pending' })]))
    expect(await gateway.findRefund(REFUND, context())).toEqual(PENDING)
  })
})

describe('movements', () => {
  it('are payments and refunds of a range, with what has moved', async () => {
    server.script = ({ path }) => {
      if (path.startsWith('/v1/refunds'))
        return answer(200, page([refund(), refund({ id: 're_2', status: 'failed', metadata: null })]))
      return answer(
        200,
        path.includes('starting_after=pi_1')
          ? page([held({ id: 'pi_2', metadata: {} })])
          : page([intent()], true),
      )
    }
    const movements: Movement[] = []
    const range = { from: new Date(1_699_999_999_001), to: new Date(1_700_000_001_000) }
    for await (const movement of gateway.movements(range)) movements.push(movement)
    const at = '2023-11-14T22:13:20.000Z'
    const [payment, back] = [
      { kind: 'payment', amount: 1_000, currency: 'EUR', at },
      { kind: 'refund', amount: 300, currency: 'EUR', at },
    ]
    expect(movements).toEqual([
      { ...payment, gateway_id: 'pi_1', account: 'acct_1:test', reference: 'pay_1', moved: 1_000 },
      { ...payment, gateway_id: 'pi_2', account: null, reference: null, moved: 0 },
      { ...back, gateway_id: 're_1', account: 'acct_1:test', reference: 'ref_1', moved: 300 },
      { ...back, gateway_id: 're_2', account: null, reference: null, moved: 0 },
    ])
    expect(decodeURIComponent(server.seen[0]!.path)).toContain(
      'created[gte]=1700000000&created[lt]=1700000001',
    )
  })
})

describe('options', () => {
  it.each<[Partial<StripeOptions>, RegExp]>([
    [{ secretKey: 'sk_live_1' }, /live mode/],
    [{ secretKey: 'pk_test_1' }, /secretKey begins/],
    [{ secretKey: 'sk_test_1\n' }, /secretKey begins/],
    [{ host: 'api.stripe.com' }, /only for a sandbox/],
    [{ secretKey: 'sk_live_1', mode: 'live' }, /only for a sandbox/],
    [{ port: 0 }, /port/],
    [{ timeoutMs: 250 }, /timeoutMs/],
    [{ visibleWithinMs: 0.5 }, /visibleWithinMs/],
  ])('refuse %j', (changes, message) => {
    expect(() => stripeGateway({ ...options, ...changes })).toThrow(message)
  })

  it('tell the library how long keys live and how far lookups lag', () => {
    expect(stripeGateway(options)).toMatchObject({
      name: 'stripe',
      mode: 'test',
      keyLifetimeMs: 82_800_000,
      visibleWithinMs: 3_900_000,
      timeoutMs: 10_000,
    })
    expect(stripeGateway({ ...options, visibleWithinMs: 5, timeoutMs: 900 })).toMatchObject({
      visibleWithinMs: 5,
      timeoutMs: 900,
    })
  })
})
