import { randomInt } from 'node:crypto'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { listening } from '../../../test/adapters/servers/listen.ts'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { startGateway } from '../../gateway/index.ts'
import { DEMO_API_KEY } from '../accounts/index.ts'
import { type ServiceProcess, startServiceProcess } from './service.ts'

const database = await freshDatabase()
const gateway = await startGateway()
cleanUpLater(() => gateway.stop())
const env = { GATEWAY_URL: gateway.url, DEMO_ACCOUNT: '1' }
const GOOD = { operation: 'payments.create' }

describe('processes side by side', () => {
  it('start on one empty database, share what they know, finish what is under way, and end', async () => {
    const [service, worker] = await Promise.all([
      startServiceProcess({ database, role: 'api', env }),
      startServiceProcess({ database, role: 'all', env: { ...env, LOG_LEVEL: 'trace' } }),
    ])
    const given = { apiKey: DEMO_API_KEY, key: 'side-by-side-1' }
    const hook = { url: 'https://hooks.example.com/side-by-side' }
    const first = await service.post('/v1/webhook-endpoints', hook, given)
    expect(first.status, first.text).toBe(201)
    const second = await worker.post('/v1/webhook-endpoints', hook, given)
    expect(second.text).toBe(first.text)
    expect(second.headers.get('idempotent-replayed')).toBe('true')

    const { key } = (await service.post('/v1/idempotency-keys', GOOD, { apiKey: DEMO_API_KEY, key: '' })).body
    const issued = { apiKey: DEMO_API_KEY, key }
    const body = { amount: 1200, currency: 'EUR', payment_method: 'pm_card_visa', reference: 'a-reference' }
    const paid = await worker.post('/v1/payments', body, issued)
    expect(paid.status, paid.text).toBe(201)
    expect((await worker.ask(`/v1/idempotency-keys/${key}`, issued)).body).toMatchObject({ known: true })
    // What greets people has the demo's key in it.
    const logged = worker
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .join('\n')
    expect(logged).toContain(`"request_id":"${paid.headers.get('request-id')}"`)
    for (const hidden of [DEMO_API_KEY.slice(-43), key, 'pm_card_visa', 'a-reference']) {
      expect(logged).not.toContain(hidden)
    }

    await untilDrained(service)
    expect(await worker.stop(), worker.output()).toBe(0)
  })

  it('say in one line that their port is taken, and end', async () => {
    const { port, close } = await listening(createServer())
    cleanUpLater(close)
    const taken = startServiceProcess({ database, role: 'api', env: { ...env, PORT: `${port}` } })
    const { message } = await taken.then(
      () => new Error('it started'),
      (error: Error) => error,
    )
    const [, ...told] = message.trim().split('\n')
    expect(told).toEqual([
      `127.0.0.1:${port} is in use by another process. Set PORT to another one, or stop that process.`,
    ])
  })

  it('say what is wrong, and end', async () => {
    const wrong = startServiceProcess({ database, role: 'api', env: { ...env, LOG_LEVEL: 'loud' } })
    await expect(wrong).rejects.toThrow(/LOG_LEVEL is one of/)
  })
})

/** A request is under way when the signal comes: it is finished, and no other is let in. */
async function untilDrained(service: ServiceProcess): Promise<void> {
  const { port } = new URL(service.url)
  const socket = connect(Number(port), '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8').on('data', (text) => {
    answer += text
  })
  const body = JSON.stringify(GOOD)
  socket.write(
    `POST /v1/idempotency-keys HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${DEMO_API_KEY}\r\n` +
      `Idempotency-Key: under-way-${randomInt(1e9)}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  )
  // It is let on, so it is under way.
  await waitUntil('the service waits for the body', () => answer.includes('100 Continue'))
  const stopped = service.stop()
  const refused = () =>
    new Promise<boolean>((resolve) => {
      const late = connect(Number(port), '127.0.0.1')
      late.once('connect', () => resolve(false)).once('error', () => resolve(true))
    })
  await waitUntil('nobody else is let in', refused)
  socket.write(body)
  expect(await stopped, service.output()).toBe(0)
  expect(answer).toContain('HTTP/1.1 201')
}
