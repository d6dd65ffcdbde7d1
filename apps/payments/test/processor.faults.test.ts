/** Whatever the processor does wrong: at most one charge, none lost, and the books of both sides agree in the end. */
import { derivedKey } from 'onlyonce/keys'
import { beforeAll, describe, expect, it } from 'vitest'
import { pickPort } from '../../../src/store/embedded/port.ts'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import type { FaultName, FaultRule } from '../../gateway/index.ts'
import { migrate } from '../database/migrate.ts'
import { verifyLedger } from './books.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import {
  type Answer,
  makeCaller,
  type ServiceProcess,
  startServiceProcess,
  type TestCaller,
} from './service.ts'

const SECRET = 'whsec_of_the_sandbox_in_tests'
const SETTLED_MAX_MS = 45_000
const WEEK_MS = 7 * 24 * 3_600_000

/** Each is met by one call of each kind; then the processor behaves. */
const FAULTS: readonly (Omit<FaultRule, 'on' | 'key'> & { readonly with?: FaultName })[] = [
  { fault: 'lose_before' },
  { fault: 'reset_before' },
  { fault: 'error_before' },
  { fault: 'busy' },
  { fault: 'busy', times: 3 },
  { fault: 'delay_before', ms: 1_500 },
  { fault: 'error_after' },
  { fault: 'delay_after', ms: 1_500 },
  { fault: 'lose_after' },
  { fault: 'reset_after' },
  { fault: 'truncate' },
  { fault: 'cut' },
  { fault: 'html' },
  { fault: 'html_ok' },
  { fault: 'wrong_amount' },
  { fault: 'wrong_currency' },
  { fault: 'lag', ms: 3_000, with: 'lose_after' },
  { fault: 'webhook_lost', with: 'lose_after' },
  { fault: 'webhook_doubled', with: 'lose_after' },
  { fault: 'webhook_reordered', with: 'lose_after' },
  { fault: 'webhook_late', ms: 1_000, with: 'lose_after' },
  { fault: 'webhook_late', ms: WEEK_MS, with: 'lose_after' },
]

let sandbox: Sandbox
let database: FreshDatabase
let caller: TestCaller
let service: ServiceProcess

beforeAll(async () => {
  const port = await pickPort()
  const webhook = { url: `http://127.0.0.1:${port}/webhooks/stripe`, secret: SECRET }
  ;[sandbox, database] = await Promise.all([openSandbox({ webhook, searchLagMs: 300 }), freshDatabase()])
  const pool = database.pool({ max: 1 })
  await migrate(pool)
  caller = await makeCaller({ pool })
  service = await startServiceProcess({
    database,
    env: {
      PORT: `${port}`,
      GATEWAY_URL: sandbox.gateway.url,
      STRIPE_WEBHOOK_SECRET: SECRET,
      LEASE_MS: '2000',
      GATEWAY_TIMEOUT_MS: '1000',
      GATEWAY_SETTLE_MS: '4000',
      GRACE_MS: '500',
      RECONCILE_AFTER_SECONDS: '0.5,1,1,2,2,4,4,8',
    },
  })
})

/** One write, with the fault at its call, and sent again until it has an answer that is final. */
async function write(
  name: string,
  path: string,
  body: object,
  call: { readonly operation: string; readonly step: string },
  fault: (typeof FAULTS)[number] | null,
): Promise<Answer> {
  const key = `${name}-of-the-faults`
  const gatewayKey = derivedKey({ account: caller.account, operation: call.operation, key, step: call.step })
  if (fault !== null) {
    const { with: other, ...rule } = fault
    const rules = [rule, ...(other === undefined ? [] : [{ fault: other }])]
    await sandbox.gateway.fault(...rules.map((one) => ({ ...one, key: gatewayKey })))
  }
  let answer: Answer | undefined
  await waitUntil(
    `${name} has an answer`,
    async () => {
      answer = await service.post(path, body, { key, apiKey: caller.apiKey })
      return answer.status < 500 && answer.status !== 429 && answer.status !== 409
    },
    SETTLED_MAX_MS,
  )
  return answer!
}

describe('whatever the processor does wrong', () => {
  it('each call is made once, and each payment is settled', { timeout: 120_000 }, async () => {
    const lives = FAULTS.map(async (fault, i) => {
      const name = `${fault.fault}-${fault.with ?? 'alone'}-${i}`
      const held = {
        amount: 1_000,
        currency: 'EUR',
        payment_method: 'pm_card_visa',
        capture_method: 'manual',
      }
      const create = { operation: 'payments.create', step: 'authorized' }
      const paid = await write(`create-${name}`, '/v1/payments', held, create, fault)
      expect([name, paid.status, paid.body.status]).toEqual([name, 201, 'requires_capture'])
      const path = `/v1/payments/${paid.body.id}`
      const capture = { operation: 'payments.capture', step: 'captured' }
      const part = await write(`capture-${name}`, `${path}/capture`, { amount: 600 }, capture, fault)
      expect([name, part.body.status]).toEqual([name, 'partially_captured'])
      const cancel = { operation: 'payments.cancel', step: 'voided' }
      const rest = await write(`cancel-${name}`, `${path}/cancel`, {}, cancel, fault)
      expect([name, rest.body.status]).toEqual([name, 'succeeded'])
      const refund = { operation: 'refunds.create', step: 'refunded' }
      const back = await write(`refund-${name}`, `${path}/refunds`, { amount: 100 }, refund, fault)
      expect([name, back.body.status]).toEqual([name, 'succeeded'])
    })
    await Promise.all(lives)
    const journal = await sandbox.gateway.journal()
    for (const kind of ['authorization', 'capture', 'void', 'refund']) {
      const keys = journal.filter((entry) => entry.kind === kind).map(({ key }) => key)
      expect([kind, keys.length, new Set(keys).size]).toEqual([kind, FAULTS.length, FAULTS.length])
    }
    await verifyLedger(database, sandbox.gateway)
  })

  it('and when the webhooks of a week ago come at last', async () => {
    const told = (await sandbox.gateway.state()).webhooks
    await sandbox.gateway.advance(WEEK_MS)
    // By their own clock they are signed a week ahead, and refused: whoever signs them now is believed, and changes nothing.
    await waitUntil('they were sent', async () => {
      const { failed, delivered } = (await sandbox.gateway.state()).webhooks
      return failed + delivered > told.failed + told.delivered
    })
    await verifyLedger(database, sandbox.gateway)
  })

  it('and while it misbehaves all the time, and dies now and then', { timeout: 120_000 }, async () => {
    const rates: FaultRule[] = [
      { fault: 'lose_after', rate: 0.08 },
      { fault: 'reset_before', rate: 0.08 },
      { fault: 'error_before', rate: 0.05 },
      { fault: 'busy', rate: 0.1 },
      { fault: 'truncate', rate: 0.05 },
      { fault: 'html', rate: 0.05 },
      { fault: 'wrong_amount', rate: 0.05 },
      { fault: 'webhook_lost', rate: 0.3 },
      { fault: 'webhook_doubled', rate: 0.3 },
    ]
    const body = { amount: 700, currency: 'EUR', payment_method: 'pm_card_visa' }
    const create = { operation: 'payments.create', step: 'authorized' }
    const all: Promise<Answer>[] = []
    // It dies of the first call of each wave, with the others under way.
    for (const fault of ['kill_before_journal', 'kill_within_journal', 'kill_after_journal'] as const) {
      // Chance may spare some of the calls for another fault, but not all of them.
      await sandbox.gateway.fault({ fault, times: 20 })
      for (let i = 0; i < 20; i += 1)
        all.push(write(`storm-${fault}-${i}`, '/v1/payments', body, create, null))
      await sandbox.gateway.ended()
      await sandbox.gateway.restart()
      await sandbox.gateway.fault(...rates)
    }
    await sandbox.gateway.behave()
    expect(new Set((await Promise.all(all)).map(({ status }) => status))).toEqual(new Set([201]))
    const charges = (await sandbox.gateway.journal()).filter(
      ({ kind, capture_method: captureMethod }) => kind === 'capture' && captureMethod === 'automatic',
    )
    expect(charges).toHaveLength(60)
    await verifyLedger(database, sandbox.gateway)
  })
})
