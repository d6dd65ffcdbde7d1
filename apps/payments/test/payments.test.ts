import { beforeAll, describe, expect, it } from 'vitest'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, type TestService } from './service.ts'

const TEA = { amount: 4_200, currency: 'eur', payment_method: 'pm_card_visa' }
let sandbox: Sandbox
let shop: TestService

beforeAll(async () => {
  sandbox = await openSandbox()
  shop = await openTestService({ gateways: { test: sandbox.client } })
})

describe('a payment', () => {
  it('is charged once, and replayed byte for byte', async () => {
    const first = await shop.post('/v1/payments', { ...TEA, reference: 'order-1' }, { key: 'order-1-first' })
    expect(first.body).toMatchObject({
      status: 'succeeded',
      amount: 4_200,
      currency: 'EUR',
      amount_captured: 4_200,
    })
    expect(first.status).toBe(201)
    const again = await shop.post('/v1/payments', { reference: 'order-1', ...TEA }, { key: 'order-1-first' })
    expect([again.status, again.text]).toEqual([201, first.text])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
  })
})
