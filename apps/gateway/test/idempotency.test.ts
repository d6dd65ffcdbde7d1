import { describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import {
  failureOf,
  failuresOf,
  HELD_TEA,
  movedBy,
  newKey,
  openGateway,
  outcomesOf,
  TEA,
} from './under-test.ts'

const { gateway, stripe } = await openGateway({ keyLifetimeMs: 3_600_000 })

const pay = (key: string, change: object = {}) =>
  stripe.paymentIntents.create({ ...TEA, ...change }, { idempotencyKey: key })

describe('the same key again', () => {
  it('gets the same answer, and moves nothing', async () => {
    const key = newKey()
    const first = await pay(key, { metadata: { a: '1', b: '2' } })
    const again = await pay(key, { metadata: { b: '2', a: '1' } })
    expect(again).toEqual(first)
    expect(first.lastResponse.headers['idempotent-replayed']).toBeUndefined()
    expect(again.lastResponse.headers).toMatchObject({
      'idempotent-replayed': 'true',
      'original-request': first.lastResponse.requestId,
      'idempotency-key': key,
    })
    expect(again.lastResponse.requestId).not.toBe(first.lastResponse.requestId)
    expect(await movedBy(gateway, key)).toEqual(['capture 4200'])
    expect(await outcomesOf(gateway, key)).toEqual(['executed', 'replayed'])
  })

  it('gets the answer of then, also when things have changed since', async () => {
    const key = newKey()
    const first = await pay(key, { capture_method: 'manual' })
    await stripe.paymentIntents.capture(first.id)
    expect(await pay(key, { capture_method: 'manual' })).toEqual(first)
    const refund = { payment_intent: first.id, amount: 100 }
    const refundKey = newKey()
    const given = await stripe.refunds.create(refund, { idempotencyKey: refundKey })
    expect(await stripe.refunds.create(refund, { idempotencyKey: refundKey })).toEqual(given)
    expect(await movedBy(gateway, refundKey)).toEqual(['refund 100'])
  })

  it('is refused with other parameters, or for something else', async () => {
    const key = newKey()
    const { id } = await pay(key)
    const others = [
      pay(key, { amount: 4201 }),
      pay(key, { metadata: { a: '1' } }),
      stripe.refunds.create({ payment_intent: id }, { idempotencyKey: key }),
    ]
    for (const failure of await failuresOf(others)) {
      expect(failure).toMatchObject({
        type: 'StripeIdempotencyError',
        rawType: 'idempotency_error',
        statusCode: 400,
      })
    }
    expect(await movedBy(gateway, key)).toEqual(['capture 4200'])
    expect((await outcomesOf(gateway, key)).slice(1)).toEqual(['key_reused', 'key_reused', 'key_reused'])
  })

  it('is another key on the capture of another payment', async () => {
    const [a, b] = await Promise.all([HELD_TEA, HELD_TEA].map((tea) => stripe.paymentIntents.create(tea)))
    const key = newKey()
    await stripe.paymentIntents.capture(a!.id, {}, { idempotencyKey: key })
    const other = stripe.paymentIntents.capture(b!.id, {}, { idempotencyKey: key })
    expect(await failureOf(other)).toMatchObject({ type: 'StripeIdempotencyError' })
  })

  it('is told 409 while the first still runs', async () => {
    const key = newKey()
    await gateway.fault({ fault: 'hold_before', key })
    const first = pay(key)
    await waitUntil('it is held', async () => (await gateway.state()).held.includes(key))
    expect(await failureOf(pay(key))).toMatchObject({
      statusCode: 409,
      rawType: 'idempotency_error',
      code: 'idempotency_key_in_use',
    })
    await gateway.release(key)
    const { id } = await first
    expect((await pay(key)).id).toBe(id)
    expect(await outcomesOf(gateway, key)).toEqual(['executed', 'in_use', 'replayed'])
  })

  it('charges once for many that come at the same time', async () => {
    const key = newKey()
    const all = await Promise.allSettled(Array.from({ length: 50 }, () => pay(key)))
    const ids = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []))
    expect(new Set(ids).size).toBe(1)
    expect(await movedBy(gateway, key)).toEqual(['capture 4200'])
    expect(await gateway.requests(key)).toHaveLength(50)
  })

  it('charges again after its time, by the clock of the gateway', async () => {
    const key = newKey()
    const first = await pay(key)
    await gateway.advance(3_500_000)
    expect((await pay(key)).id).toBe(first.id)
    await gateway.advance(200_000)
    expect((await pay(key)).id).not.toBe(first.id)
    expect(await movedBy(gateway, key)).toHaveLength(2)
  })
})

describe('what is remembered', () => {
  it('is a refusal by the state of things, also when that has changed', async () => {
    const { id } = await stripe.paymentIntents.create(HELD_TEA)
    const key = newKey()
    const refund = () => stripe.refunds.create({ payment_intent: id }, { idempotencyKey: key })
    const first = await failureOf(refund())
    await stripe.paymentIntents.capture(id)
    const again = await failureOf(refund())
    expect(again).toMatchObject({ code: first.code, message: first.message, statusCode: 400 })
    expect(again.headers?.['idempotent-replayed']).toBe('true')
    expect(await movedBy(gateway, key)).toEqual([])
  })

  it('is an error 500 that came after the start, whether anything was done or not', async () => {
    for (const { fault, moved } of [
      { fault: 'error_after', moved: ['capture 4200'] },
      { fault: 'error_instead', moved: [] },
    ] as const) {
      const key = newKey()
      await gateway.fault({ fault, key })
      expect(await failureOf(pay(key))).toMatchObject({ type: 'StripeAPIError', statusCode: 500 })
      const again = await failureOf(pay(key))
      expect(again).toMatchObject({ type: 'StripeAPIError', statusCode: 500 })
      expect(again.headers?.['idempotent-replayed']).toBe('true')
      expect(await movedBy(gateway, key)).toEqual(moved)
    }
  })

  it('is nothing of what was refused before it began', async () => {
    const key = newKey()
    expect(await failureOf(pay(key, { amount: 0 }))).toMatchObject({ statusCode: 400 })
    expect(await failureOf(pay(key, { payment_method: 'pm_none' }))).toMatchObject({ statusCode: 400 })
    for (const fault of ['busy', 'error_before'] as const) {
      await gateway.fault({ fault, key })
      await failureOf(pay(key))
    }
    expect((await pay(key)).status).toBe('succeeded')
    expect(await outcomesOf(gateway, key)).toEqual(['refused', 'refused', 'failed', 'failed', 'executed'])
  })
})

it('a key that is too long is refused, and none is none', async () => {
  expect(await failureOf(pay('k'.repeat(256)))).toMatchObject({ statusCode: 400 })
  const send = async () => {
    const response = await fetch(`${gateway.url}/v1/payment_intents`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.apiKey}` },
      body: new URLSearchParams({ ...TEA, amount: '1', confirm: 'true' }),
    })
    return ((await response.json()) as { id: string }).id
  }
  expect(await send()).not.toBe(await send())
})
