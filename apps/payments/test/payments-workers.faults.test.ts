/** What nobody asks for: the workers behind payments. */
import { notExecuted } from 'onlyonce'
import { operator } from 'onlyonce/operator'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeId } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { decide, expirer, marker, sweeper } from '../payments/index.ts'
import { backgroundOf } from '../workers.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, type TestService } from './service.ts'

const HELD = { amount: 1_000, currency: 'EUR', payment_method: 'pm_card_visa', capture_method: 'manual' }
let sandbox: Sandbox
let shop: TestService

/** The same service, of which the processor cannot be reached. */
let cutOff: TestService

beforeAll(async () => {
  // It shows at once what it has done: operators decide at once here.
  sandbox = await openSandbox({}, { visibleWithinMs: 1 })
  shop = await openTestService({ gateways: { test: sandbox.client } })
  const fail = async () => {
    throw notExecuted(new Error('The processor is away.'))
  }
  const away = { ...sandbox.client, authorize: fail, capture: fail, void: fail, refund: fail }
  cutOff = await openTestService({ database: shop.database, gateways: { test: away } })
})

beforeEach(async () => {
  await shop.service.pool.query('TRUNCATE payments.payments CASCADE')
})

/** Asks where the processor cannot be reached, and never again. */
async function askInVain(path: string, body: object): Promise<void> {
  const { status } = await cutOff.post(path, body, { apiKey: shop.apiKey, key: `in-vain-${path}` })
  expect(status).toBe(503)
}

/** So much time passes: the record is gone, and what was reserved is old. */
async function pass(days: number): Promise<void> {
  await shop.service.pool.query(`DELETE FROM onlyonce.records WHERE key LIKE 'in-vain-%'`)
  await age(days)
}

async function age(days: number): Promise<void> {
  const { pool } = shop.service
  for (const table of ['payments', 'captures', 'refunds'])
    await pool.query(`UPDATE payments.${table} SET created_at = created_at - $1 * interval '1 day'`, [days])
  await pool.query(`UPDATE payments.payments SET updated_at = updated_at - $1 * interval '1 day'`, [days])
}

async function pay(changes: object = {}): Promise<string> {
  return (await shop.post('/v1/payments', { ...HELD, ...changes })).body.id
}

const find = async (id: string) => (await shop.ask(`/v1/payments/${id}`)).body

/** A page of payments that were due a day ago, and that somebody lets go of who does not come to an end. */
async function fillPageWithStuck(): Promise<void> {
  const ids = Array.from({ length: LIMITS.workerBatchMax }, () => makeId('pay'))
  await shop.service.pool.query(
    `INSERT INTO payments.payments (account, id, status, amount, currency, capture_method, payment_method, idempotency_key,
       gateway, gateway_id, held, closing, capture_before, updated_at)
     SELECT $1, id, 'requires_capture', 1, 'EUR', 'manual', 'pm_card_visa', 'stuck', 'stripe', 'pi_stuck_' || id, 1,
       'payments.expire stuck-for-days', now() - interval '1 day', now() - interval '3 days'
     FROM unnest($2::text[]) AS id`,
    [shop.account, ids],
  )
}

describe('the expirer', () => {
  it('comes to those behind a page of others that cannot be let go of', async () => {
    const id = await pay()
    await shop.service.pool.query(
      `UPDATE payments.payments SET capture_before = now() - interval '1 second' WHERE id = $1`,
      [id],
    )
    await fillPageWithStuck()
    const worker = expirer(shop.service)
    expect(await worker.runOnce()).toEqual({ done: LIMITS.workerBatchMax, more: true })
    expect(await worker.runOnce()).toEqual({ done: 1, more: false })
    expect(await find(id)).toMatchObject({ status: 'expired' })
  })
})

describe('the sweeper', () => {
  const takeAll = async ([captured, canceled, refunded]: readonly string[]) => [
    (await shop.post(`/v1/payments/${captured}/capture`, {})).status,
    (await shop.post(`/v1/payments/${canceled}/cancel`, {})).status,
    (await shop.post(`/v1/payments/${refunded}/refunds`, { amount: 1_000 })).status,
  ]

  /** A capture, a cancellation and a refund that never reached the processor. */
  async function reserveInVain() {
    const ids = [await pay(), await pay(), await pay({ capture_method: 'automatic' })] as const
    await askInVain(`/v1/payments/${ids[0]}/capture`, { amount: 700, final: true })
    await askInVain(`/v1/payments/${ids[1]}/cancel`, {})
    await askInVain(`/v1/payments/${ids[2]}/refunds`, { amount: 400 })
    return ids
  }

  const heldBy = async (ids: readonly string[]) => {
    const { rows } = await shop.service.pool.query(
      `SELECT capturing::int, refunding::int, closing IS NOT NULL AS closing FROM payments.payments
       WHERE id = ANY ($1) ORDER BY id`,
      [ids],
    )
    return rows.map(({ capturing, refunding, closing }) => [capturing, refunding, closing])
  }
  const NOTHING = [0, 0, false]

  it('gives back what was reserved in vain, and ends the requests that reserved it', async () => {
    const ids = await reserveInVain()
    const worker = sweeper(shop.service)
    await worker.runOnce()
    expect(await heldBy(ids)).toEqual([
      [700, 0, true],
      [0, 0, true],
      [0, 400, false],
    ])
    await age(0.1)
    expect(await worker.runOnce()).toMatchObject({ done: 3 })
    expect(await heldBy(ids)).toEqual([NOTHING, NOTHING, NOTHING])
    for (const [path, body] of [
      [`/v1/payments/${ids[0]}/capture`, { amount: 700, final: true }],
      [`/v1/payments/${ids[1]}/cancel`, {}],
      [`/v1/payments/${ids[2]}/refunds`, { amount: 400 }],
    ] as const) {
      const late = await shop.post(path, body, { key: `in-vain-${path}` })
      expect([late.status, late.body.code]).toEqual([422, 'request_given_up'])
    }
    expect(await takeAll(ids)).toEqual([200, 200, 201])
    expect(await worker.runOnce()).toEqual({ done: 0, more: false })
  })

  it('gives back also what was reserved by a request whose record is gone', async () => {
    const ids = await reserveInVain()
    await pass(2)
    expect(await sweeper(shop.service).runOnce()).toMatchObject({ done: 3 })
    expect(await heldBy(ids)).toEqual([NOTHING, NOTHING, NOTHING])
    expect(await takeAll(ids)).toEqual([200, 200, 201])
  })

  it('comes to those behind a page of others that nobody can end now', async () => {
    const id = await pay({ capture_method: 'automatic' })
    const key = 'in-vain-and-unknown'
    const lost = async () => {
      throw new Error('The answer was lost.')
    }
    const deaf = { ...sandbox.client, refund: lost, findRefund: lost }
    const lossy = await openTestService({ database: shop.database, gateways: { test: deaf } })
    const path = `/v1/payments/${id}/refunds`
    const { body } = await lossy.post(path, { amount: 1 }, { apiKey: shop.apiKey, key })
    expect(body.code).toBe('outcome_pending')
    await askInVain(path, { amount: 500 })
    await age(1)
    await shop.service.pool.query(
      `INSERT INTO payments.refunds (account, payment, id, amount, idempotency_key, created_at)
       SELECT $1, $2, 'ref_' || n, 1, $4, now() - interval '3 days' FROM generate_series(1, $3) AS n`,
      [shop.account, id, LIMITS.workerBatchMax, key],
    )
    const worker = sweeper(shop.service)
    expect(await worker.runOnce()).toMatchObject({ more: true })
    expect(await heldBy([id])).toEqual([[0, 501, false]])
    expect(await worker.runOnce()).toMatchObject({ more: false })
    expect(await heldBy([id])).toEqual([[0, 1, false]])
  })
})

describe('the marker', () => {
  it('tells of a payment that nobody came back to that it has failed', async () => {
    await askInVain('/v1/payments', HELD)
    const [payment] = (await shop.ask('/v1/payments')).body.data
    expect(payment.status).toBe('processing')
    await pass(0.01)
    expect(await marker(shop.service).runOnce()).toEqual({ done: 1, more: false })
    expect(await find(payment.id)).toMatchObject({ status: 'failed', decline: { code: 'not_executed' } })
  })

  it('tells the same where its key was used for a new payment since', async () => {
    await askInVain('/v1/payments', HELD)
    await pass(0.01)
    const second = await shop.post('/v1/payments', HELD, { key: 'in-vain-/v1/payments' })
    expect(second.body.status).toBe('requires_capture')
    await marker(shop.service).runOnce()
    const { data } = (await shop.ask('/v1/payments')).body
    expect(data.map(({ status }: { status: string }) => status)).toEqual(['requires_capture', 'failed'])
  })
})

describe('the marker, where one payment cannot be written', () => {
  it('tells of the others all the same, and says that it failed', async () => {
    const { pool } = shop.service
    const given = (key: string) => ({ apiKey: shop.apiKey, key })
    for (const key of ['in-vain-first', 'in-vain-second'])
      expect((await cutOff.post('/v1/payments', HELD, given(key))).status).toBe(503)
    await pass(0.01)
    await pool.query(`
      CREATE FUNCTION payments.refuse_first() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'this one is broken'; END $$;
      CREATE TRIGGER refuse_first BEFORE UPDATE ON payments.payments FOR EACH ROW
        WHEN (OLD.idempotency_key = 'in-vain-first') EXECUTE FUNCTION payments.refuse_first()`)
    const marking = marker(shop.service)
      .runOnce()
      .finally(() => pool.query('DROP FUNCTION payments.refuse_first CASCADE'))
    await expect(marking).rejects.toThrow('this one is broken')
    const { data } = (await shop.ask('/v1/payments')).body
    expect(data.map(({ status }: { status: string }) => status)).toEqual(['failed', 'processing'])
  })
})

describe('a charge that another one has', () => {
  it('parks its record with the name of that one, and is declared not executed only while it is so', async () => {
    const id = await pay({ capture_method: 'automatic' })
    const [{ gateway_id: pi }] = (await find(id)).attempts
    await shop.post(`/v1/payments/${id}/refunds`, { amount: 100 })
    const { rows } = await shop.service.pool.query('SELECT id, gateway_id FROM payments.refunds')
    // A processor that says of the next payment, and of the next refund, that they are those.
    const money = { amount: 100, currency: 'EUR', capture_before: null }
    const test = {
      ...sandbox.client,
      authorize: async () => ({ ...money, status: 'captured' as const, gateway_id: pi }),
      refund: async () => ({ ...money, status: 'refunded' as const, gateway_id: rows[0].gateway_id }),
    }
    const twice = await openTestService({ database: shop.database, gateways: { test } })
    const { apiKey, account } = shop
    for (const { operation, path, owner, worker } of [
      { operation: 'payments.create', path: '/v1/payments', owner: id, worker: marker(shop.service) },
      {
        operation: 'refunds.create',
        path: `/v1/payments/${id}/refunds`,
        owner: rows[0].id,
        worker: sweeper(shop.service),
      },
    ]) {
      const record = { account, operation, key: `taken-${operation}` }
      const body =
        operation === 'payments.create'
          ? { ...HELD, capture_method: 'automatic', amount: 100 }
          : { amount: 100 }
      const first = await twice.post(path, body, { apiKey, key: record.key })
      expect(first.body).toMatchObject({ status: 409, code: 'outcome_pending', executed: 'unknown' })
      expect(first.headers.get('retry-after')).toBe('1')
      expect(first.text).not.toContain(owner)
      await age(0.01)
      const desk = operator(shop.service.once)
      // Parked already, and in no audit why: a worker parks so when it has looked for the last time.
      const before = operation === 'payments.create' ? ['park', 'unpark', 'park'] : ['park']
      if (before.length > 1) await desk.park(record, { by: 'ann', why: 'to look at it' })
      for (let run = 0; run < 2; run += 1) await worker.runOnce()
      const { state, record: parked, audit } = await desk.show(record)
      expect([state, parked!.failure!.code]).toEqual(['parked', 'gateway_id_taken'])
      expect(audit.map(({ action }) => action)).toEqual(before)
      const named = expect.stringContaining(`${owner} of ${account}`)
      expect([audit.at(-1)!.why, parked!.failure!.message]).toEqual([named, named])
      const late = () =>
        decide(shop.service, record, { decision: 'not_executed', by: 'ann', why: 'refunded' })
      // Where the other one has it no more, this one is settled with it.
      const table = operation === 'payments.create' ? 'payments' : 'refunds'
      const give = (gatewayId: string | null) =>
        shop.service.pool.query(`UPDATE payments.${table} SET gateway_id = $2 WHERE id = $1`, [
          owner,
          gatewayId,
        ])
      await give(null)
      await expect(late()).rejects.toMatchObject({ code: 'not_resolvable' })
      await give(operation === 'payments.create' ? pi : rows[0].gateway_id)
      await late()
      expect(await desk.show(record)).toMatchObject({ state: 'completed' })
    }
  })
})

describe('the checkpointer', () => {
  it('is one of the workers, and writes down what balances have come to', async () => {
    const { account, apiKey } = await shop.addCaller()
    await shop.service.pool.query(
      `INSERT INTO payments.ledger_transactions (account, id, kind, source, state, ledger_accounts, currencies, amounts)
       SELECT $1, 'txn_' || n, 'capture', 'cap_' || n, 'posted', '{gateway,balance}', '{EUR,EUR}', '{5,-5}'
       FROM generate_series(1, 1000) AS n`,
      [account],
    )
    const worker = backgroundOf(shop.service).workers.find(({ name }) => name === 'ledger.checkpointer')!
    expect(await worker.runOnce()).toEqual({ done: 1, more: false })
    const { body } = await shop.ask('/v1/balances', { apiKey })
    expect(body.data).toEqual([{ currency: 'EUR', available: 5_000, pending: 0 }])
  })
})
