/** What Stripe's own SDK does after each answer, beside the client: the table in docs/guides/clients.md says it. */
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import Stripe from 'stripe'
import { expect, it } from 'vitest'
import { idempotentFetch } from '../../src/client/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
type Answer = (response: ServerResponse) => void
const answer =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { ...JSON_TYPE, ...headers }).end('{"error":{"type":"api_error"}}')
  }
const told = (value: 'true' | 'false') => ({ 'stripe-should-retry': value })

/** Null: nothing listens. */
const ANSWERS: readonly [name: string, answer: Answer | null][] = [
  ['400', answer(400)],
  ['400 with `Stripe-Should-Retry: true`', answer(400, told('true'))],
  ['402', answer(402)],
  ['409', answer(409)],
  ['409 with `Stripe-Should-Retry: false`', answer(409, told('false'))],
  ['429', answer(429)],
  ['429 with `Stripe-Should-Retry: true`', answer(429, told('true'))],
  ['500', answer(500)],
  ['500 with `Stripe-Should-Retry: false`', answer(500, told('false'))],
  ['503', answer(503)],
  ['none: the connection is reset', (response) => response.socket?.resetAndDestroy()],
  ['none: nothing listens', null],
  [
    '200 that is cut off',
    (response) => {
      response.writeHead(200, { ...JSON_TYPE, 'content-length': '100' })
      response.write('{"id":', () => response.socket?.resetAndDestroy())
    },
  ],
]

/** A server that always answers so, what it was asked, and where it is. */
async function serverOf(end: Answer | null) {
  const keys: unknown[] = []
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key'])
    request.resume().on('end', () => end?.(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()))
  if (end === null) await close()
  else {
    cleanUpLater(async () => {
      server.closeAllConnections()
      server.close()
    })
  }
  return { keys, port }
}

/** How often it sends, and what it ends with. */
async function ofSdk(end: Answer | null, more: { maxNetworkRetries?: number } = {}) {
  const { keys, port } = await serverOf(end)
  const host = { host: '127.0.0.1', port, protocol: 'http', telemetry: false } as const
  const stripe = new Stripe('sk_test_1', { ...host, ...more })
  let sent = 0
  stripe.on('request', () => {
    sent += 1
  })
  const ended = await stripe.paymentIntents.create({ amount: 100, currency: 'eur' }).then(
    () => 'the result',
    (error: { type: string }) => `\`${error.type}\``,
  )
  expect(new Set(keys).size).toBe(end === null ? 0 : 1)
  return { sent, ended }
}

async function ofClient(end: Answer | null) {
  const { keys, port } = await serverOf(end)
  let sent = 0
  const pay = idempotentFetch({
    api: 'stripe',
    initialDelayMs: 20,
    maxDelayMs: 50,
    deadlineMs: 2_000,
    onAttempt: ({ number }) => {
      sent = number
    },
  })
  const ended = await pay(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'amount=100' }).then(
    () => 'the `Response`',
    (error: Error) => `\`${error.name}\``,
  )
  expect(new Set(keys).size).toBe(end === null ? 0 : 1)
  return { sent: sent > 3 ? 'until the deadline' : sent, ended }
}

it('docs/guides/clients.md tells how often each of them sends a request, and what its caller is told', async () => {
  const rows = ANSWERS.map(async ([name, end]) => {
    const [sdk, off, client] = await Promise.all([
      ofSdk(end),
      ofSdk(end, { maxNetworkRetries: 0 }),
      ofClient(end),
    ])
    return `| ${name} | ${sdk.sent} | ${off.sent} | ${sdk.ended} | ${client.sent} | ${client.ended} |`
  })
  const page = readFileSync(new URL('../../docs/guides/clients.md', import.meta.url), 'utf8')
  const [, section = ''] = page.split("### Beside Stripe's SDK\n")
  const lines = section.split('\n## ')[0]!.split('\n')
  const table = lines.filter((line) => line.startsWith('| '))
  expect(table.slice(1)).toEqual(await Promise.all(rows))
})

it('the SDK reads no Retry-After, as the page says', () => {
  const folder = dirname(createRequire(import.meta.url).resolve('stripe'))
  const source = readFileSync(join(folder, 'RequestSender.js'), 'utf8')
  expect(source).toContain('stripe-should-retry')
  expect(source).not.toMatch(/retry-after/i)
})
