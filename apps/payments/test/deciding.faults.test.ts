/** Processes that are killed while they decide about a payment in doubt. */
import { createServer } from 'node:http'
import { callRefused } from 'onlyonce'
import { operator } from 'onlyonce/operator'
import { beforeAll, expect, it } from 'vitest'
import { listening } from '../../../test/adapters/servers/listen.ts'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { marker } from '../payments/workers.ts'
import { chargeOf } from './charges.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, startServiceProcess, TEST_OPS_TOKEN, type TestService } from './service.ts'

const TEA = { amount: 1_000, currency: 'EUR', payment_method: 'pm_card_visa' }
const SIGNED = { by: 'ann', why: 'looked it up at the processor' }
const OPS = { apiKey: TEST_OPS_TOKEN, key: '' }

let sandbox: Sandbox
let shop: TestService
beforeAll(async () => {
  sandbox = await openSandbox()
  shop = await openTestService({ gateways: { test: sandbox.client } })
})

/** A payment that is parked, because the processor refused it. */
async function parkedPayment(key: string) {
  const refuse = async () => {
    throw callRefused(new Error('The processor does not understand it.'))
  }
  const gateways = { test: { ...sandbox.client, authorize: refuse } }
  const unpaid = await openTestService({ database: shop.database, gateways })
  const { apiKey, account } = await shop.addCaller()
  expect((await unpaid.post('/v1/payments', TEA, { apiKey, key })).body.code).toBe('parked')
  return { account, operation: 'payments.create', key }
}

it.each(['decisions', 'evidence'])(
  'a process killed while it looks up what an operator has named changes nothing: %s',
  async (what) => {
    const record = await parkedPayment(`deciding-${what}`)
    const gatewayId = await chargeOf(sandbox.client, shop, record)
    let looked = 0
    const silent = await listening(
      createServer(() => {
        looked += 1
      }),
    )
    cleanUpLater(silent.close)
    const env = { GATEWAY_URL: `http://127.0.0.1:${silent.port}` }
    const dying = await startServiceProcess({ database: shop.database, role: 'api', env })
    const said = what === 'decisions' ? { decision: 'executed' } : { outcome: 'executed' }
    const body = { ...record, ...SIGNED, gateway_id: gatewayId, ...said }
    const unanswered = dying.post(`/ops/record/${what}`, body, OPS).catch(() => null)
    await waitUntil('the processor is asked', () => looked > 0)
    await dying.kill()
    expect(await unanswered).toBeNull()
    const path = `/ops/record?${new URLSearchParams(record)}`
    expect((await shop.ask(path, OPS)).body).toMatchObject({ state: 'parked', audit: [] })
    // The operator asks again, and is answered as if for the first time.
    const answer = await shop.post(`/ops/record/${what}`, body, OPS)
    const state = what === 'decisions' ? 'completed' : 'unknown'
    expect(answer.body).toMatchObject({
      state,
      audit: expect.arrayContaining([expect.objectContaining(SIGNED)]),
    })
  },
)

/** A payment in doubt whose charge at the processor another payment has. */
async function takenPayment(key: string) {
  const { apiKey, account } = await shop.addCaller()
  const { gateway_id: gatewayId } = (await shop.post('/v1/payments', TEA, { apiKey })).body.attempts[0]
  const charge = {
    amount: 1_000,
    currency: 'EUR',
    capture_before: null,
    status: 'captured' as const,
    gateway_id: gatewayId,
  }
  const gateways = { test: { ...sandbox.client, authorize: async () => charge } }
  const twice = await openTestService({ database: shop.database, gateways })
  expect((await twice.post('/v1/payments', TEA, { apiKey, key })).body).toMatchObject({
    executed: 'unknown',
  })
  const aged = "UPDATE payments.payments SET created_at = created_at - interval '1 hour' WHERE account = $1"
  await shop.service.pool.query(aged, [account])
  return { account, operation: 'payments.create', key }
}

it('a worker killed while it parks a payment whose charge another one has leaves it to the next', async () => {
  const record = await takenPayment('taken-and-killed')
  const pool = shop.database.direct({ max: 2 })
  // No look comes first.
  await pool.query(`UPDATE onlyonce.records SET look_at = now() + interval '1 hour' WHERE key = $1`, [
    record.key,
  ])
  const held = await pool.connect()
  await held.query('BEGIN')
  await held.query('SELECT FROM onlyonce.records WHERE account = $1 AND key = $2 FOR UPDATE', [
    record.account,
    record.key,
  ])
  const env = { GATEWAY_URL: sandbox.gateway.url }
  const dying = await startServiceProcess({ database: shop.database, role: 'worker', env })
  await waitUntil('it parks the payment', async () => {
    const { rows } = await pool.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%WITH decided%'`,
    )
    return rows.length > 0
  })
  await dying.kill()
  await held.query('COMMIT')
  held.release()
  const desk = operator(shop.service.once)
  await waitUntil('the next worker has parked it, or the dead one', async () => {
    await marker(shop.service).runOnce()
    return (await desk.show(record)).state === 'parked'
  })
  const { audit } = await desk.show(record)
  expect(audit).toMatchObject([{ action: 'park', by: 'payments.marker' }])
})
