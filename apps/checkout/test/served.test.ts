import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { buildApi } from '../../payments/api/index.ts'
import { readConfig } from '../../payments/config.ts'
import { openTestService } from '../../payments/test/service.ts'

const REAL = {
  DATABASE_URL: 'postgres://app:secret@db.internal/payments',
  ONLYONCE_SECRET: 'a secret of at least thirty-two bytes',
}
const PATHS = [
  ['GET', '/'],
  ['GET', '/checkout/app.js'],
  ['GET', '/checkout/books?keys=a'],
  ['POST', '/checkout/fault'],
  ['POST', '/checkout/line/v1/payments'],
] as const

describe('where the checkout is served', () => {
  it('in development, with the sandbox processor that the service has started', () => {
    expect(readConfig({}).checkout).toBe(true)
    expect(readConfig({ ...REAL, DEMO_ACCOUNT: '1' }).checkout).toBe(true)
  })

  it.each([
    ['a database that may be real', REAL],
    ['NODE_ENV=production', { ...REAL, NODE_ENV: 'production', STRIPE_SECRET_KEY: 'sk_test_1' }],
    ['a host that others can reach', { ...REAL, HOST: '0.0.0.0', STRIPE_SECRET_KEY: 'sk_test_1' }],
    ['a processor that may be real', { ...REAL, DEMO_ACCOUNT: '1', STRIPE_SECRET_KEY: 'sk_test_1' }],
    ['a sandbox of others', { ...REAL, DEMO_ACCOUNT: '1', GATEWAY_URL: 'http://127.0.0.1:4010' }],
    ['no demo account', { DEMO_ACCOUNT: '0' }],
  ])('not with %s', (_, env) => {
    expect(readConfig(env).checkout).toBe(false)
  })

  it('nowhere else: no page, and no way to make anything go wrong', async () => {
    const { url, service } = await openTestService()
    for (const [method, path] of PATHS) {
      const body = method === 'POST' ? { body: '{"fault":"server_killed"}' } : {}
      const headers = { 'content-type': 'application/json' }
      const { status } = await fetch(`${url}${path}`, { method, headers, ...body })
      expect([path, status]).toEqual([path, 404])
    }
    const config = { ...service.config, checkout: true, production: 'NODE_ENV is production' }
    await expect(buildApi({ ...service, config })).rejects.toThrow('The checkout is for development.')
  })
})

describe('the checkout', () => {
  it('allows itself nothing from elsewhere and nothing inline, and obeys no other page', async () => {
    const { url } = await openTestService({ config: { checkout: true } })
    const page = await fetch(`${url}/`)
    const policy = page.headers.get('content-security-policy')!
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'/)
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/)
    const html = await page.text()
    expect(html).not.toMatch(/<style|style=|<script(?![^>]* src="\/checkout\/app\.js")|\son\w+=|https?:\/\//)
    expect(await (await fetch(`${url}/checkout/app.js`)).text()).toContain('Idempotency-Key')

    // A page of another site may send what needs no permission, or have its own name point here.
    const simple = await fetch(`${url}/checkout/fault`, { method: 'POST', body: '{"fault":"server_killed"}' })
    expect(simple.status).toBe(415)
    for (const [method, path] of PATHS)
      expect([path, await statusOf(`${url}${path}`, method)]).toEqual([path, 404])
  })
})

function statusOf(url: string, method: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers: { host: 'evil.example' } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    asked.on('error', reject).end()
  })
}
