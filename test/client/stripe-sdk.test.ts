/** How often Stripe's own SDK sends a request, beside the client: the table in docs/guides/clients.md says it. */
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Stripe from 'stripe'
import { expect, it } from 'vitest'
import { idempotentFetch } from '../../src/client/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const answer =
  (status: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse) => {
    response.writeHead(status, { ...JSON_TYPE, ...headers }).end('{"error":{"type":"api_error"}}')
  }

const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'no answer': (response) => response.socket?.resetAndDestroy(),
  'an answer that is cut off': (response) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-length': '100' })
    response.write('{"id":', () => response.socket?.resetAndDestroy())
  },
  '409': answer(409),
  '429': answer(429),
  '429 with `Stripe-Should-Retry: true`': answer(429, { 'stripe-should-retry': 'true' }),
  '500': answer(500),
  '500 with `Stripe-Should-Retry: false`': answer(500, { 'stripe-should-retry': 'false' }),
  '503': answer(503),
  '400': answer(400),
}

/** A server that always answers so, what it was asked, and where it is. */
async function serverOf(end: (response: ServerResponse) => void) {
  const keys: unknown[] = []
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key'])
    request.resume().on('end', () => end(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(async () => {
    server.closeAllConnections()
    server.close()
  })
  return { keys, port: (server.address() as AddressInfo).port }
}

async function askedBySdk(end: (response: ServerResponse) => void): Promise<number> {
  const { keys, port } = await serverOf(end)
  const stripe = new Stripe('sk_test_1', { host: '127.0.0.1', port, protocol: 'http', telemetry: false })
  await stripe.paymentIntents.create({ amount: 100, currency: 'eur' }).catch(() => {})
  expect(new Set(keys).size).toBe(1)
  return keys.length
}

async function askedByClient(end: (response: ServerResponse) => void): Promise<number> {
  const { keys, port } = await serverOf(end)
  const pay = idempotentFetch({ api: 'stripe', initialDelayMs: 20, maxDelayMs: 50, deadlineMs: 2_000 })
  await pay(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'amount=100' }).catch(() => {})
  expect(new Set(keys).size).toBe(1)
  return keys.length
}

it('docs/guides/clients.md tells how often each of them sends a request', async () => {
  const rows = Object.entries(ANSWERS).map(async ([name, end]) => {
    const [sdk, client] = await Promise.all([askedBySdk(end), askedByClient(end)])
    return `| ${name} | ${sdk} | ${client > 3 ? 'until the deadline' : client} |`
  })
  const page = readFileSync(new URL('../../docs/guides/clients.md', import.meta.url), 'utf8')
  const [, section = ''] = page.split("### Beside Stripe's SDK\n")
  const told = section
    .split('\n## ')[0]!
    .split('\n')
    .filter((line) => line.startsWith('| '))
  expect(told.slice(1)).toEqual(await Promise.all(rows))
})
