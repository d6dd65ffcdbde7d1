import { signWebhook } from 'onlyonce/webhooks'
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { runWorkers } from '../workers.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, type TestService } from './service.ts'

const SECRET = 'whsec_of_the_sandbox_in_tests'
const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
let sandbox: Sandbox
let shop: TestService

beforeAll(async () => {
  sandbox = await openSandbox()
  shop = await openTestService({
    gateways: { test: sandbox.client },
    config: { webhookSecrets: ['whsec_the_one_before', SECRET] },
    // Nobody looks by himself for a minute.
    once: { reconcileAfterMs: [60_000] },
  })
})

interface Told {
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  readonly timestamp?: number
}

function tell({ body, timestamp = Date.now(), headers }: Told) {
  const signed = signWebhook({ scheme: 'stripe', body: Buffer.from(body), secrets: [SECRET], timestamp })
  return shop.post('/webhooks/stripe', body, {
    apiKey: null,
    key: '',
    headers: { ...(signed as Record<string, string>), ...headers },
  })
}

/** The event that the sandbox has for a payment, as it would send it. */
async function eventOf(reference: string): Promise<string> {
  const response = await fetch(`${sandbox.gateway.url}/v1/events?limit=100`, {
    headers: { authorization: `Bearer ${sandbox.gateway.apiKey}` },
  })
  const { data } = (await response.json()) as {
    data: { data: { object: { metadata?: { reference?: string } } } }[]
  }
  return JSON.stringify(data.find((event) => event.data.object.metadata?.reference === reference))
}

const countJobs = async () =>
  (await shop.service.pool.query(`SELECT count(*)::int AS n FROM onlyonce.jobs WHERE job = 'gateway.event'`))
    .rows[0].n

describe('what the processor tells', () => {
  it('settles a payment in doubt that nobody else could have asked about', async () => {
    const metadata = { name: 'reference', value: 'told-1' }
    await sandbox.gateway.fault(
      { fault: 'lose_after', metadata, times: 10 },
      { fault: 'error_before', on: 'lookup', rate: 1 },
    )
    const first = await shop.post(
      '/v1/payments',
      { ...TEA, reference: 'told-1' },
      { key: 'told-by-a-webhook' },
    )
    expect([first.status, first.body.code]).toEqual([409, 'outcome_pending'])
    const { body: list } = await shop.ask('/v1/payments?reference=told-1')
    expect((await shop.ask(`/v1/payments/${list.data[0].id}`)).body.status).toBe('unknown')
    await sandbox.gateway.behave()
    const event = await eventOf('told-1')
    await sandbox.gateway.fault({ fault: 'error_before', on: 'lookup', rate: 1 })
    for (let i = 0; i < 3; i += 1) expect((await tell({ body: event })).status).toBe(204)
    expect(await countJobs()).toBe(1)
    const workers = runWorkers(shop.service, { everyMs: 50 })
    cleanUpLater(() => workers.stop())
    await waitUntil('it is settled', async () => {
      const { body } = await shop.ask(`/v1/payments/${list.data[0].id}`)
      return body.status === 'succeeded'
    })
    await workers.stop()
    const again = await shop.post(
      '/v1/payments',
      { ...TEA, reference: 'told-1' },
      { key: 'told-by-a-webhook' },
    )
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    await sandbox.gateway.behave()
  })

  it('is not heard unless it is signed, by one who knows the secret, and lately', async () => {
    const body = JSON.stringify({ id: 'evt_1', type: 'payment_intent.succeeded', data: { object: {} } })
    const unsigned = await shop.post('/webhooks/stripe', body, { apiKey: null, key: '' })
    expect([unsigned.status, unsigned.body.code]).toEqual([400, 'webhook_unsigned'])
    const forged = await tell({
      body,
      headers: { 'stripe-signature': `t=${Math.floor(Date.now() / 1_000)},v1=00` },
    })
    expect([forged.status, forged.body.code]).toEqual([400, 'webhook_signature_invalid'])
    const old = await tell({ body, timestamp: Date.now() - 3_600_000 })
    expect([old.status, old.body.code]).toEqual([400, 'webhook_too_old'])
    for (const answer of [unsigned, forged, old]) {
      expect(answer.headers.get('content-type')).toBe('application/problem+json')
    }
  })

  it('about what is none of ours is acknowledged, and proves nothing', async () => {
    const before = await countJobs()
    const object = { id: 'pi_other', object: 'payment_intent', metadata: {}, status: 'succeeded' }
    const body = JSON.stringify({ id: 'evt_other', type: 'payment_intent.succeeded', data: { object } })
    expect((await tell({ body })).status).toBe(204)
    expect(await countJobs()).toBe(before + 1)
    const workers = runWorkers(shop.service, { everyMs: 50 })
    cleanUpLater(() => workers.stop())
    await waitUntil('it was read', async () => {
      const { rows } = await shop.service.pool.query(
        `SELECT count(*)::int AS n FROM onlyonce.jobs WHERE job = 'gateway.event' AND done_at IS NULL`,
      )
      return rows[0].n === 0
    })
    await workers.stop()
  })
})

it('whose signature is wrong costs its address a try, and one that is signed costs none', async () => {
  const strict = await openTestService({
    database: shop.database,
    gateways: {},
    config: { webhookSecrets: [SECRET], limits: { ...shop.service.config.limits, strangersPerMinute: 2 } },
  })
  const send = async (secret: string) => {
    const body = JSON.stringify({
      id: 'evt_1',
      object: 'event',
      type: 'charge.updated',
      data: { object: {} },
    })
    const signature = signWebhook({
      scheme: 'stripe',
      body: Buffer.from(body),
      secrets: [secret],
      timestamp: Date.now(),
    })
    const headers = signature as Record<string, string>
    return (await strict.post('/webhooks/stripe', body, { apiKey: null, key: '', headers })).status
  }
  for (let n = 0; n < 5; n += 1) expect(await send(SECRET)).toBe(204)
  const forged = []
  for (let n = 0; n < 5; n += 1) forged.push(await send('whsec_of_nobody_who_is_known_here'))
  expect(forged.filter((status) => status === 429).length).toBeGreaterThanOrEqual(2)
})
