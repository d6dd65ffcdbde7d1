/** What has gone wrong before, in other people's payment services, played over HTTP against processes of their own. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { migrate } from '../database/migrate.ts'
import { verifyLedger } from './books.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { makeCaller, type ServiceProcess, startServiceProcess, type TestCaller } from './service.ts'

const INVOICE = { amount: 420_000, currency: 'USD', payment_method: 'pm_card_visa', reference: 'inv_8812' }
const LEASE_MS = 1_500

let sandbox: Sandbox
let database: FreshDatabase
let caller: TestCaller
let servers: [ServiceProcess, ServiceProcess]

async function startServer(): Promise<ServiceProcess> {
  return await startServiceProcess({ database, role: 'api', env: environment() })
}

const startWorker = () => startServiceProcess({ database, role: 'worker', env: environment() })

const environment = () => ({
  GATEWAY_URL: sandbox.gateway.url,
  LEASE_MS: `${LEASE_MS}`,
  GATEWAY_TIMEOUT_MS: '900',
  GATEWAY_SETTLE_MS: '1500',
  GRACE_MS: '300',
  RECONCILE_AFTER_SECONDS: '0.5,1,2,4,8',
})

beforeAll(async () => {
  ;[sandbox, database] = await Promise.all([openSandbox(), freshDatabase()])
  const pool = database.pool({ max: 1 })
  await migrate(pool)
  caller = await makeCaller({ pool })
  servers = await Promise.all([startServer(), startServer()])
})

const pay = (server: ServiceProcess, key: string, changes: object = {}) =>
  server.post('/v1/payments', { ...INVOICE, ...changes }, { key, apiKey: caller.apiKey })

/** Sends again as a client would: the same key, until there is an answer that does not ask for another try. */
async function payUntilTold(server: ServiceProcess, key: string, changes: object = {}) {
  let answer = await pay(server, key, changes)
  await waitUntil('the payment has an answer', async () => {
    if (answer.status !== 409 && answer.status < 500) return true
    answer = await pay(server, key, changes)
    return false
  })
  return answer
}

async function chargesOf(reference: string) {
  const journal = await sandbox.gateway.journal()
  return journal.filter(({ kind, metadata }) => kind === 'capture' && metadata.reference === reference)
}

describe('two taps on "pay"', () => {
  it('2 ms apart, at two servers, charge once', async () => {
    for (let i = 0; i < 5; i += 1) {
      const [key, reference] = [`two-taps-number-${i}`, `taps-${i}`]
      const first = pay(servers[0], key, { reference })
      const second = new Promise((resolve) => setTimeout(resolve, 2)).then(() =>
        pay(servers[1], key, { reference }),
      )
      const statuses = (await Promise.all([first, second])).map(({ status }) => status).sort()
      expect([
        [201, 201],
        [201, 409],
      ]).toContainEqual(statuses)
      const told = await Promise.all(servers.map((server) => payUntilTold(server, key, { reference })))
      expect(told[0]!.text).toBe(told[1]!.text)
      expect(told[0]!.status).toBe(201)
      expect(await chargesOf(reference)).toHaveLength(1)
    }
  })
})

describe('a server that dies', () => {
  it('between the gateway and its commit: the retry sends the same key, and one charge is made', async () => {
    const [key, reference] = ['dies-after-the-charge', 'died-1']
    const dying = await startServer()
    const metadata = { name: 'reference', value: reference }
    // Lookups do not see the charge for long, so that it is sent again.
    await sandbox.gateway.fault({ fault: 'hold_after', metadata }, { fault: 'lag', ms: 600_000, metadata })
    const lost = pay(dying, key, { reference }).catch(() => null)
    await waitUntil('the gateway has charged', async () => (await chargesOf(reference)).length === 1)
    await dying.kill()
    expect(await lost).toBeNull()
    // Its lease is fresh: others are told to wait. Then it is stale, and the next one takes the record over.
    const early = await pay(servers[0], key, { reference })
    expect([early.status, early.body.code]).toEqual([409, 'in_progress'])
    expect(early.headers.get('retry-after')).not.toBeNull()
    await sandbox.gateway.release()
    const told = await payUntilTold(servers[1], key, { reference })
    expect(told.body).toMatchObject({ status: 'succeeded', amount_captured: INVOICE.amount })
    const [charge, ...others] = await chargesOf(reference)
    expect(others).toEqual([])
    expect((await pay(servers[0], key, { reference })).text).toBe(told.text)
    const seen = await sandbox.gateway.requests(charge!.key!)
    expect(seen.map(({ outcome }) => outcome)).toEqual(['executed', 'replayed'])
  })

  it('and whose client never comes back: a worker finishes the payment', async () => {
    const [key, reference] = ['nobody-comes-back', 'died-2']
    const dying = await startServer()
    await sandbox.gateway.fault({ fault: 'hold_after', metadata: { name: 'reference', value: reference } })
    const lost = pay(dying, key, { reference }).catch(() => null)
    await waitUntil('the gateway has charged', async () => (await chargesOf(reference)).length === 1)
    await dying.kill()
    await lost
    await sandbox.gateway.release()
    const worker = await startWorker()
    await waitUntil('it is settled', async () => {
      const { body } = await servers[0].ask(`/v1/payments?reference=${reference}`, {
        apiKey: caller.apiKey,
      })
      return body.data[0]?.status === 'succeeded'
    })
    expect(await worker.stop()).toBe(0)
    expect(await chargesOf(reference)).toHaveLength(1)
  })
})

describe('a server that dies while the processor has done more with payments', () => {
  it('leaves captures, cancellations and refunds to a worker, which makes each once', async () => {
    const dying = await startServer()
    const { gateway } = sandbox
    const before = await gateway.journal()
    const make = async (reference: string, captureMethod: string) =>
      (await payUntilTold(servers[0], `${reference}-is-made`, { reference, capture_method: captureMethod }))
        .body.id
    const [toCapture, toCancel, toRefund] = await Promise.all([
      make('more-1', 'manual'),
      make('more-2', 'manual'),
      make('more-3', 'automatic'),
    ])
    await gateway.fault(
      ...(['capture', 'cancel', 'refund'] as const).map((on) => ({ fault: 'hold_after', on }) as const),
    )
    const send = (id: string, what: string, body: object) =>
      dying
        .post(`/v1/payments/${id}/${what}`, body, { key: `${what}-of-the-dying`, apiKey: caller.apiKey })
        .catch(() => null)
    const lost = [
      send(toCapture, 'capture', { amount: 1_000 }),
      send(toCancel, 'cancel', {}),
      send(toRefund, 'refunds', { amount: 500 }),
    ]
    const done = async () => (await gateway.journal()).slice(before.length).map(({ kind }) => kind)
    await waitUntil('the processor has done all three', async () => {
      const kinds = await done()
      return (
        kinds.includes('void') &&
        kinds.includes('refund') &&
        kinds.filter((kind) => kind === 'capture').length === 2
      )
    })
    await dying.kill()
    expect(await Promise.all(lost)).toEqual([null, null, null])
    await gateway.release()
    const worker = await startWorker()
    const find = async (id: string) =>
      (await servers[0].ask(`/v1/payments/${id}`, { apiKey: caller.apiKey })).body
    await waitUntil('all are settled', async () => {
      const [captured, canceled, refunded] = await Promise.all([toCapture, toCancel, toRefund].map(find))
      return (
        captured.amount_captured === 1_000 &&
        canceled.status === 'canceled' &&
        refunded.amount_refunded === 500
      )
    })
    expect(await worker.stop()).toBe(0)
    expect((await done()).sort()).toEqual([
      'authorization',
      'authorization',
      'capture',
      'capture',
      'refund',
      'void',
    ])
  })
})

describe('an answer', () => {
  it('to a changed amount under the same key is 422', async () => {
    await payUntilTold(servers[0], 'one-key-many-amounts', { reference: 'changed' })
    const other = await pay(servers[1], 'one-key-many-amounts', { reference: 'changed', amount: 5_000 })
    expect([other.status, other.body.code]).toEqual([422, 'key_reused'])
    expect(await chargesOf('changed')).toHaveLength(1)
  })

  it('of a declined card is its decline, as often as it is asked', async () => {
    const declined = { reference: 'declined', payment_method: 'pm_card_chargeDeclined' }
    const first = await pay(servers[0], 'a-declined-card', declined)
    expect([first.status, first.body.code]).toEqual([402, 'payment_declined'])
    const again = await pay(servers[1], 'a-declined-card', declined)
    expect([again.status, again.text]).toEqual([402, first.text])
    const journal = await sandbox.gateway.journal()
    const declines = journal.filter(
      ({ kind, metadata }) => kind === 'decline' && metadata.reference === 'declined',
    )
    expect(declines).toHaveLength(1)
  })

  it('that comes too late from the gateway ends as one payment', async () => {
    const [key, reference] = ['a-late-success', 'late']
    await sandbox.gateway.fault({
      fault: 'hold_before',
      metadata: { name: 'reference', value: reference },
    })
    const first = await pay(servers[0], key, { reference })
    expect([409, 503]).toContain(first.status)
    // It is carried out only now, when everybody has given it up for lost. Retries run nothing: a worker finds out.
    await sandbox.gateway.release()
    const worker = await startWorker()
    const told = await payUntilTold(servers[1], key, { reference })
    expect(told.body).toMatchObject({ status: 'succeeded' })
    expect(await worker.stop()).toBe(0)
    expect(await chargesOf(reference)).toHaveLength(1)
  })
})

describe('the books', () => {
  it('are those of the gateway', async () => {
    await verifyLedger(database, sandbox.gateway)
  })
})
