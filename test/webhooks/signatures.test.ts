import { createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { describe, expect, it } from 'vitest'
import { signWebhook, type VerifyOptions, verifyWebhook } from '../../src/webhooks/index.ts'

const stripe = new Stripe('sk_test_nothing_is_called')
const BODY = Buffer.from('{"id":"evt_1","größe":"💶","n":1.50}')
const STRIPE = 'whsec_of_stripe'
const STANDARD = `whsec_${randomBytes(32).toString('base64')}`
const OTHER = `whsec_${randomBytes(32).toString('base64')}`
const now = 1_800_000_000_000
const nowS = now / 1_000

const stripeHeader = (changes: object = {}) =>
  stripe.webhooks.generateTestHeaderString({
    payload: BODY.toString(),
    secret: STRIPE,
    timestamp: nowS,
    ...changes,
  })
const verifyStripe = (header: string, changes: Partial<VerifyOptions> = {}) =>
  verifyWebhook({
    scheme: 'stripe',
    headers: { 'Stripe-Signature': header },
    body: BODY,
    secrets: STRIPE,
    now,
    ...changes,
  })
const signed = (changes: object = {}) =>
  signWebhook({ scheme: 'standard', id: 'msg_1', body: BODY, secrets: STANDARD, timestamp: now, ...changes })
const verifyStandard = (headers: VerifyOptions['headers'], changes: Partial<VerifyOptions> = {}) =>
  verifyWebhook({ scheme: 'standard', headers, body: BODY, secrets: STANDARD, now, ...changes })
const refusal = (code: string, status = 400) =>
  expect.objectContaining({ name: 'OnlyonceError', code, status })

describe('what the official libraries sign is verified', () => {
  it('by the SDK of Stripe', () => {
    expect(verifyStripe(stripeHeader())).toEqual({ id: 'evt_1', timestamp: now, payload: BODY })
  })

  it('by standardwebhooks', () => {
    const signature = new Webhook(STANDARD).sign('msg_1', new Date(now), BODY.toString())
    const headers = { 'Webhook-Id': 'msg_1', 'webhook-timestamp': `${nowS}`, 'webhook-signature': signature }
    expect(verifyStandard(headers)).toEqual({ id: 'msg_1', timestamp: now, payload: BODY })
    expect(verifyStandard(new Headers(headers)).id).toBe('msg_1')
  })
})

describe('what is signed is verified by the official libraries', () => {
  it('by the SDK of Stripe', () => {
    const secrets = [STRIPE, 'another']
    const headers = signWebhook({ scheme: 'stripe', body: BODY, secrets, timestamp: now })
    for (const secret of secrets) {
      const header = headers['stripe-signature']!
      const event = stripe.webhooks.constructEvent(BODY, header, secret, undefined, undefined, now)
      expect(event.id).toBe('evt_1')
    }
  })

  it('by standardwebhooks, with either secret of a rotation', () => {
    const headers = signed({ timestamp: Date.now(), secrets: [OTHER, STANDARD] })
    for (const secret of [STANDARD, OTHER]) {
      expect(new Webhook(secret).verify(BODY.toString(), { ...headers })).toMatchObject({ id: 'evt_1' })
    }
  })
})

describe('rotation', () => {
  it('any of several secrets verifies, and any of several signatures is enough', () => {
    expect(verifyStandard(signed({ secrets: OTHER }), { secrets: [STANDARD, OTHER] }).id).toBe('msg_1')
    const several = signed()['webhook-signature']!
    const headers = { ...signed(), 'webhook-signature': `v1a,xyz v1,wrong ${several} v2,abc` }
    expect(verifyStandard(headers).id).toBe('msg_1')
    const header = stripeHeader()
    expect(verifyStripe(header.replace('v1=', `v1=${'0'.repeat(64)},v1=`)).id).toBe('evt_1')
    expect(verifyStripe(header, { secrets: ['another', STRIPE] }).id).toBe('evt_1')
  })
})

describe('refused is', () => {
  it('another secret, other bytes, another id, another timestamp', () => {
    const wrong = refusal('webhook_signature_invalid')
    expect(() => verifyStandard(signed({ secrets: OTHER }))).toThrow(wrong)
    expect(() => verifyStandard(signed(), { body: Buffer.from(`${BODY} `) })).toThrow(wrong)
    expect(() => verifyStandard({ ...signed(), 'webhook-id': 'msg_2' })).toThrow(wrong)
    expect(() => verifyStandard({ ...signed(), 'webhook-timestamp': `${nowS + 1}` })).toThrow(wrong)
    expect(() => verifyStripe(stripeHeader(), { secrets: 'whsec_of_strip' })).toThrow(wrong)
    expect(() => verifyStripe(stripeHeader({ scheme: 'v0' }))).toThrow(refusal('webhook_unsigned'))
    expect(() => verifyStripe(stripeHeader().slice(0, -1))).toThrow(wrong)
    expect(() =>
      verifyStripe(stripeHeader().toUpperCase().replace('T=', 't=').replace('V1=', 'v1=')),
    ).toThrow(wrong)
  })

  it('bytes that decode to the same text as those that were signed', () => {
    const [one, other] = [Buffer.from([0x22, 0xff, 0x22]), Buffer.from([0x22, 0xfe, 0x22])]
    expect(one.toString()).toBe(other.toString())
    const headers = signed({ body: one })
    expect(verifyStandard(headers, { body: one }).payload).toEqual(one)
    expect(() => verifyStandard(headers, { body: other })).toThrow(refusal('webhook_signature_invalid'))
  })

  it('what was signed once, cut at another dot: an old body that looks like a timestamp and a newer one', () => {
    const old = signed({ timestamp: now - 86_400_000, body: Buffer.from(`${nowS}.25`) })
    const id = `msg_1.${nowS - 86_400}`
    for (const [cut, body] of [
      [{ 'webhook-id': id, 'webhook-timestamp': `${nowS}` }, '25'],
      [{ 'webhook-id': `${id}.x`, 'webhook-timestamp': `${nowS}` }, '25'],
    ] as const) {
      const forged = { ...old, ...cut }
      expect(() => verifyStandard(forged, { body: Buffer.from(body) })).toThrow(refusal('webhook_unsigned'))
    }
    const key = Buffer.from(STANDARD.slice(6), 'base64')
    const honest = createHmac('sha256', key).update(`com.shop.7a.${nowS}.`).update(BODY).digest('base64')
    const dotted = { ...signed(), 'webhook-id': 'com.shop.7a', 'webhook-signature': `v1,${honest}` }
    expect(verifyStandard(dotted).id).toBe('com.shop.7a')
  })

  it('what is too old, or too far ahead, and only when it is genuine', () => {
    const at = (timestamp: number) => signed({ timestamp })
    expect(verifyStandard(at(now - 300_000)).timestamp).toBe(now - 300_000)
    expect(verifyStandard(at(now + 300_000)).timestamp).toBe(now + 300_000)
    expect(() => verifyStandard(at(now - 301_000))).toThrow(refusal('webhook_too_old'))
    expect(() => verifyStandard(at(now + 301_000))).toThrow(refusal('webhook_too_new'))
    expect(() => verifyStandard(at(now - 2_000), { toleranceMs: 1_000 })).toThrow(refusal('webhook_too_old'))
    expect(() => verifyStripe(stripeHeader({ timestamp: nowS - 301 }))).toThrow(refusal('webhook_too_old'))
    const forged = { ...at(now - 301_000), 'webhook-signature': 'v1,AAAA' }
    expect(() => verifyStandard(forged)).toThrow(refusal('webhook_signature_invalid'))
  })

  it.each([
    '',
    '1e9',
    ' 1800000000',
    '1800000000 ',
    '+1800000000',
    '-1',
    '0x6b49d200',
    '1800000000.0',
    '1800000000abc',
    '9'.repeat(13),
    '١٢٣',
  ])('a timestamp that is not digits alone, also where it is signed so: %j', (timestamp) => {
    const key = Buffer.from(STANDARD.slice(6), 'base64')
    const signature = createHmac('sha256', key).update(`msg_1.${timestamp}.`).update(BODY).digest('base64')
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    }
    const code = timestamp === '' ? 'webhook_unsigned' : 'webhook_timestamp_invalid'
    expect(() => verifyStandard(headers)).toThrow(refusal(code))
    if (timestamp === '') return
    const hex = createHmac('sha256', STRIPE).update(`${timestamp}.`).update(BODY).digest('hex')
    expect(() => verifyStripe(`t=${timestamp},v1=${hex}`)).toThrow(refusal('webhook_timestamp_invalid'))
  })

  it('what carries no signature, or a header twice', () => {
    const unsigned = refusal('webhook_unsigned')
    for (const missing of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
      expect(() => verifyStandard({ ...signed(), [missing]: undefined })).toThrow(unsigned)
      expect(() => verifyStandard({ ...signed(), [missing]: ['a', 'b'] })).toThrow(unsigned)
    }
    expect(() => verifyStandard({ ...signed(), 'Webhook-Id': 'msg_2' })).toThrow(unsigned)
    expect(() => verifyStandard({ ...signed(), 'webhook-signature': 'v2,abc' })).toThrow(unsigned)
    expect(() => verifyStripe('')).toThrow(unsigned)
    expect(() => verifyStripe(`t=${nowS}`)).toThrow(unsigned)
    expect(() => verifyStripe(`t=1,${stripeHeader()}`)).toThrow(unsigned)
  })

  it('a body that is text or parsed already, and secrets that are none', () => {
    for (const body of [BODY.toString(), JSON.parse(BODY.toString()), undefined, null, [1, 2], BODY.buffer]) {
      const given = body as unknown as Buffer
      expect(() => verifyStandard(signed(), { body: given })).toThrow(refusal('webhook_body_not_raw', 500))
      expect(() => signed({ body: given })).toThrow(refusal('webhook_body_not_raw', 500))
    }
    expect(verifyStandard(signed(), { body: new Uint8Array(BODY) }).payload).toEqual(BODY)
    for (const secrets of ['', [], 'whsec_', 'whsec_not base64!', 'whsec_abc', Array(9).fill(STANDARD)]) {
      expect(() => verifyStandard(signed(), { secrets })).toThrow(refusal('webhook_secret_invalid', 500))
    }
    expect(() => verifyStandard(signed(), { scheme: 'github' as 'stripe' })).toThrow(
      refusal('option_invalid', 500),
    )
    expect(() => verifyStandard(signed(), { toleranceMs: 0 })).toThrow(refusal('option_invalid', 500))
    expect(() => signed({ id: 'a.b' })).toThrow(refusal('option_invalid', 500))
  })

  it('a genuine webhook of Stripe without an id', () => {
    for (const payload of ['{}', 'null', 'no json', '{"id":7}']) {
      const header = stripeHeader({ payload })
      const body = Buffer.from(payload)
      expect(() => verifyStripe(header, { body })).toThrow(refusal('webhook_payload_invalid'))
    }
  })
})
