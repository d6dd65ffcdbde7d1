import { describe, expect, it } from 'vitest'
import { openTestService } from './service.ts'

describe('without its database', () => {
  it('the service says so, starts nothing, and lives', async () => {
    const { ask, post, database } = await openTestService()
    expect((await ask('/readyz')).status).toBe(200)
    await database.drop()
    const answers = [
      await ask('/readyz'),
      await ask('/v1/balances'),
      await post('/v1/idempotency-keys', { operation: 'payments.create' }),
    ]
    for (const { status, headers, body, text } of answers) {
      expect([status, body.code, body.retryable], text).toEqual([503, 'unavailable', true])
      expect(headers.get('content-type')).toBe('application/problem+json')
      expect(text).not.toMatch(/postgres|database "|does not exist/)
    }
    expect((await ask('/healthz')).status).toBe(200)
  })
})

describe('with a key of encryption', () => {
  it('no secret of an endpoint is in any table, and a replay shows it all the same', async () => {
    const { post, service } = await openTestService({
      config: { encryption: 'the-encryption-key-of-the-tests-0123456789' },
    })
    const given = { key: 'a-sealed-secret-1' }
    const made = await post('/v1/webhook-endpoints', { url: 'https://shop.example/hooks' }, given)
    expect(made.status, made.text).toBe(201)
    const { secret } = made.body
    const { rows: tables } = await service.pool.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ('onlyonce', 'payments')`,
    )
    const raw = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const traces = [Buffer.from(secret).toString('hex'), raw.toString('hex'), secret]
    for (const { name } of tables) {
      const { rows } = await service.pool.query<{ row: string }>(
        `SELECT row_to_json(t)::text AS row FROM ${name} t`,
      )
      const held = rows.filter(({ row }) => traces.some((trace) => row.includes(trace)))
      expect(held, name).toEqual([])
    }
    expect(tables.length).toBeGreaterThan(10)
    expect((await post('/v1/webhook-endpoints', { url: 'https://shop.example/hooks' }, given)).text).toBe(
      made.text,
    )
  })
})
