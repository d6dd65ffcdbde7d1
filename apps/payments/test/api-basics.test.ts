import { describe, expect, it } from 'vitest'
import { openTestService } from './service.ts'

const shared = await openTestService()
const { ask, post } = shared

describe('smoke', () => {
  it('issues keys', async () => {
    const r = await post('/v1/idempotency-keys', { operation: 'payments.create' }, { key: 'smoke-key-1' })
    expect(r.status, r.text).toBe(201)
    const again = await post('/v1/idempotency-keys', { operation: 'payments.create' }, { key: 'smoke-key-1' })
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.text).toBe(r.text)
  })
  it('openapi', async () => {
    const r = await ask('/openapi.json')
    console.log(JSON.stringify(r.body, null, 1).slice(0, 3000))
  })
})
