/** What operators see and decide, over HTTP. */
import { callRefused } from 'onlyonce'
import { reconciler, startWorkers } from 'onlyonce/workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import { captureOf, chargeOf, refundOf } from './charges.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { type Answer, type Ask, openTestService, TEST_OPS_TOKEN, type TestService } from './service.ts'

const TEA = { amount: 1_000, currency: 'EUR', payment_method: 'pm_card_visa' }
const HELD = { ...TEA, capture_method: 'manual' }
const SIGNED = { by: 'ann', why: 'looked it up at the processor' }
let sandbox: Sandbox
let shop: TestService
/** The same service, whose processor refuses everything but payments. */
let misread: TestService
/** The same, whose processor refuses payments. */
let unpaid: TestService

beforeAll(async () => {
  // It shows at once what it has done: operators decide at once here.
  sandbox = await openSandbox({}, { visibleWithinMs: 1 })
  shop = await openTestService({ gateways: { test: sandbox.client } })
  const refuse = async () => {
    throw callRefused(new Error('The processor does not understand it.'))
  }
  const gateway = { ...sandbox.client, capture: refuse, void: refuse, refund: refuse }
  misread = await openTestService({ database: shop.database, gateways: { test: gateway } })
  const closed = { ...sandbox.client, authorize: refuse }
  unpaid = await openTestService({ database: shop.database, gateways: { test: closed } })
})

const ops = (path: string, given: Ask = {}) => shop.ask(path, { apiKey: TEST_OPS_TOKEN, ...given })
const opsPost = (path: string, body: object) => ops(path, { method: 'POST', body, key: '' })
const queryOf = (record: Record<string, string>) => new URLSearchParams(record).toString()

let asked = 0
/** A request that is parked, in an account of its own. */
async function parked(what: 'capture' | 'refunds', body: object) {
  asked += 1
  const { apiKey, account } = await shop.addCaller()
  const paid = await shop.post('/v1/payments', what === 'refunds' ? TEA : HELD, { apiKey })
  const key = `parked-request-${asked}`
  const path = `/v1/payments/${paid.body.id}/${what}`
  const send = () => shop.post(path, body, { apiKey, key })
  const first = await misread.post(path, body, { apiKey, key })
  expect(first.body.code).toBe('parked')
  const record = { account, operation: what === 'refunds' ? 'refunds.create' : 'payments.capture', key }
  const balance = async () => (await shop.ask('/v1/balances', { apiKey })).body.data[0]
  return { id: paid.body.id as string, apiKey, record, send, balance }
}

async function parkedPayment(body: object = TEA) {
  asked += 1
  const { apiKey, account } = await shop.addCaller()
  const key = `parked-request-${asked}`
  expect((await unpaid.post('/v1/payments', body, { apiKey, key })).body.code).toBe('parked')
  return { account, operation: 'payments.create', key }
}

/** What a person has made at the processor: nothing in it names one of ours. */
async function byHand(what: 'payment_intents' | 'refunds', form: Record<string, string>): Promise<string> {
  const { url, apiKey } = sandbox.gateway
  const headers = { authorization: `Bearer ${apiKey}` }
  const made = await fetch(`${url}/v1/${what}`, { method: 'POST', headers, body: new URLSearchParams(form) })
  const told = (await made.json()) as { id: string; error?: { payment_intent: { id: string } } }
  return told.error?.payment_intent.id ?? told.id
}
const BY_HAND = { amount: '1000', currency: 'eur', payment_method: 'pm_card_visa', confirm: 'true' }

/** Two refunds of one payment in doubt, and a person has given the money back once. */
async function expectOneRefund() {
  const { record, id, apiKey } = await parked('refunds', { amount: 300 })
  const second = { ...record, key: `${record.key}-second` }
  await misread.post(`/v1/payments/${id}/refunds`, { amount: 300 }, { apiKey, key: second.key })
  const paid = (await shop.ask(`/v1/payments/${id}`, { apiKey })).body
  const gatewayId = await byHand('refunds', { payment_intent: paid.attempts[0].gateway_id, amount: '300' })
  const both = [record, second].map((one) =>
    opsPost('/ops/record/decisions', { ...one, ...SIGNED, decision: 'executed', gateway_id: gatewayId }),
  )
  expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 400])
}

describe('a record', () => {
  it('is shown with its attempts and the audit, to operators alone', async () => {
    const { record, apiKey } = await parked('refunds', { amount: 100 })
    const path = `/ops/record?${queryOf(record)}`
    expect((await shop.ask(path, { apiKey })).status).toBe(401)
    const { status, body } = await ops(path)
    expect(status).toBe(200)
    expect(body).toMatchObject({ state: 'parked', record: { ...record, fence: 1 }, audit: [] })
    expect(body.in_doubt).toEqual({
      step: 'refunded',
      key: body.record.waits_for,
      generation: 0,
      since: expect.any(Number),
    })
    expect(body.why).toContain('the call of step refunded')
    expect(body.attempts).toHaveLength(1)
    const nobody = await ops(`/ops/record?${queryOf({ ...record, key: 'a-key-of-nobody' })}`)
    expect(nobody.body).toMatchObject({ state: 'none', record: null })
    expect((await ops('/ops/record?account=a')).body).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  it('is decided upon, and what follows is posted', async () => {
    const { record, send, balance } = await parked('refunds', { amount: 300 })
    const gatewayId = await refundOf(sandbox.client, shop, record)
    const decision = { ...record, ...SIGNED, decision: 'executed', gateway_id: gatewayId, fence: 1 }
    const stale = await opsPost('/ops/record/decisions', { ...decision, fence: 7 })
    expect([stale.status, stale.body.code]).toEqual([409, 'record_changed'])
    const unnamed = await opsPost('/ops/record/decisions', { ...decision, gateway_id: undefined })
    expect(unnamed.body).toMatchObject({ status: 400, field: 'gateway_id' })
    expect(await balance()).toMatchObject({ available: 1_000 })
    const decided = await opsPost('/ops/record/decisions', decision)
    expect(decided.status).toBe(200)
    expect(decided.body).toMatchObject({ state: 'completed', audit: [{ ...SIGNED, action: 'resolve' }] })
    expect(await balance()).toMatchObject({ available: 700 })
    expect((await send()).status).toBe(201)
    for (const { fence, code } of [
      { fence: 1, code: 'record_changed' },
      { fence: undefined, code: 'not_resolvable' },
    ]) {
      const again = await opsPost('/ops/record/decisions', { ...decision, fence })
      expect([again.status, again.body.code]).toEqual([409, code])
    }
  })

  it('is not executed as what another payment or refund is called', async () => {
    const { apiKey } = await shop.addCaller()
    const paid = (await shop.post('/v1/payments', TEA, { apiKey })).body
    await shop.post(`/v1/payments/${paid.id}/refunds`, { amount: 300 }, { apiKey })
    const { rows } = await shop.service.pool.query(
      'SELECT gateway_id FROM payments.refunds WHERE payment = $1',
      [paid.id],
    )
    const refund = await parked('refunds', { amount: 300 })
    const payment = await parkedPayment()
    for (const { record, gateway_id: gatewayId } of [
      { record: refund.record, gateway_id: rows[0].gateway_id },
      { record: payment, gateway_id: paid.attempts[0].gateway_id },
    ]) {
      const named = { ...record, ...SIGNED, gateway_id: gatewayId }
      const told = [
        await opsPost('/ops/record/decisions', { ...named, decision: 'executed' }),
        await opsPost('/ops/record/evidence', { ...named, outcome: 'executed' }),
      ]
      for (const { body } of told) expect(body).toMatchObject({ status: 400, field: 'gateway_id' })
      expect((await ops(`/ops/record?${queryOf(record)}`)).body).toMatchObject({ state: 'parked', audit: [] })
    }
    expect(await refund.balance()).toMatchObject({ available: 1_000 })
    // One that was made by hand names no payment of ours. One of the two decisions gets it.
    const gatewayId = await byHand('payment_intents', BY_HAND)
    const both = [payment, await parkedPayment()].map((record) =>
      opsPost('/ops/record/decisions', { ...record, ...SIGNED, decision: 'executed', gateway_id: gatewayId }),
    )
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 400])
    const late = { ...(await parkedPayment()), ...SIGNED, outcome: 'executed', gateway_id: gatewayId }
    expect((await opsPost('/ops/record/evidence', late)).body).toMatchObject({
      status: 400,
      field: 'gateway_id',
    })
    await expectOneRefund()
  })

  it('is executed as what the processor itself says to be of it, and as nothing else', async () => {
    const record = await parkedPayment()
    const own = await chargeOf(sandbox.client, shop, record)
    const other = await parkedPayment()
    const wrong = [
      ...[
        `${own} `,
        ` ${own}`,
        own.toUpperCase(),
        `${own}\n`,
        `https://dashboard.example/${own}`,
        `re_1`,
        `pi_x/../${own}`,
      ],
      'pi_unknown',
      await chargeOf(sandbox.client, shop, other),
      await byHand('payment_intents', { ...BY_HAND, amount: '999' }),
      await byHand('payment_intents', { ...BY_HAND, currency: 'usd' }),
      await byHand('payment_intents', { ...BY_HAND, payment_method: 'pm_card_chargeDeclined' }),
    ]
    for (const gatewayId of wrong) {
      const named = { ...record, ...SIGNED, gateway_id: gatewayId }
      const told = [
        await opsPost('/ops/record/decisions', { ...named, decision: 'executed', unchecked: true }),
        await opsPost('/ops/record/evidence', { ...named, outcome: 'executed' }),
      ]
      for (const { body } of told)
        expect.soft(body, gatewayId).toMatchObject({ status: 400, field: 'gateway_id' })
    }
    const decision = { ...record, ...SIGNED, decision: 'executed', gateway_id: own }
    expect((await opsPost('/ops/record/decisions', decision)).body).toMatchObject({ state: 'completed' })
  })

  it('is not decided while the processor cannot be asked, unless the operator answers for it', async () => {
    const record = await parkedPayment(HELD)
    const away = async () => {
      throw new Error('The processor is away.')
    }
    const gateways = { test: { ...sandbox.client, lookUp: away } }
    const alone = await openTestService({ database: shop.database, gateways })
    const decide = (more: object) =>
      alone.post(
        '/ops/record/decisions',
        { ...record, ...SIGNED, decision: 'executed', gateway_id: 'pi_gone', ...more },
        { apiKey: TEST_OPS_TOKEN, key: '' },
      )
    const refused = await decide({})
    expect(refused.body).toMatchObject({ status: 503, code: 'unavailable', executed: 'not_by_this_request' })
    expect((await decide({ decision: 'retry', unchecked: true })).body.field).toBe('unchecked')
    expect((await decide({ unchecked: true, gateway_id: 'pi_gone ' })).body.field).toBe('gateway_id')
    // Until when it is held, nobody else can say then.
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
    for (const captureBefore of [undefined, inDays(-1), inDays(32)]) {
      const { body } = await decide({ unchecked: true, capture_before: captureBefore })
      expect(body).toMatchObject({ status: 400, field: 'capture_before' })
    }
    const { body } = await decide({ unchecked: true, capture_before: inDays(7) })
    expect(body).toMatchObject({
      state: 'completed',
      audit: [{ by: 'ann', why: `Unchecked: ${SIGNED.why}` }],
    })
  })

  it('of a payment that is held ends when the processor says', async () => {
    const record = await parkedPayment(HELD)
    const gatewayId = await chargeOf(sandbox.client, shop, record)
    const decision = { ...record, ...SIGNED, decision: 'executed', gateway_id: gatewayId }
    const later = { ...decision, capture_before: '9999-12-31T23:59:59Z' }
    expect((await opsPost('/ops/record/decisions', later)).body.field).toBe('capture_before')
    expect((await opsPost('/ops/record/decisions', decision)).status).toBe(200)
    const { rows } = await shop.service.pool.query(
      `SELECT capture_before BETWEEN now() AND now() + interval '8 days' AS soon FROM payments.payments WHERE account = $1`,
      [record.account],
    )
    expect(rows).toEqual([{ soon: true }])
  })

  it('that two operators decide at once is decided by one of them', async () => {
    for (const what of ['refunds', 'capture'] as const) {
      const { record, id, apiKey } = await parked(what, { amount: 300 })
      const [{ gateway_id: paymentIntent }] = (await shop.ask(`/v1/payments/${id}`, { apiKey })).body.attempts
      const gatewayId =
        what === 'refunds'
          ? await byHand('refunds', { payment_intent: paymentIntent, amount: '300' })
          : undefined
      const { pool } = shop.service
      const held = await pool.connect()
      await held.query('BEGIN')
      await held.query('SELECT FROM payments.payments WHERE account = $1 FOR UPDATE', [record.account])
      const decisions = what === 'refunds' ? ['executed', 'not_executed'] : ['not_executed', 'not_executed']
      const both = decisions.map((decision) =>
        opsPost('/ops/record/decisions', {
          ...record,
          ...SIGNED,
          decision,
          ...(decision === 'executed' && { gateway_id: gatewayId }),
        }),
      )
      await waitUntil('both wait for the payment', async () => {
        const { rows } = await pool.query(
          `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
        )
        return rows.length === 2
      })
      await held.query('COMMIT')
      held.release()
      const told = (await Promise.all(both)).map(({ status, body }) => `${status} ${body.code ?? body.state}`)
      expect(told.sort()).toEqual(['200 completed', '409 record_changed'])
    }
  })

  it('gets the reply that the operator gives, and is settled all the same', async () => {
    const { record, send, id, apiKey } = await parked('capture', { amount: 400 })
    const reply = { status: 422, body: { told: 'by hand' } }
    const decide = (given: object) =>
      opsPost('/ops/record/decisions', { ...record, ...SIGNED, decision: 'not_executed', reply: given })
    for (const headers of [
      { 'x-a': 'b\r\nSet-Cookie: c=d' },
      { 'transfer-encoding': 'chunked' },
      { 'x-a': '€' },
    ]) {
      const { body } = await decide({ ...reply, headers })
      expect(body).toMatchObject({ status: 400, code: 'invalid_request', field: 'reply' })
    }
    await decide({ ...reply, headers: { 'Content-Type': 'application/vnd.shop+json' } })
    const { status, body, headers } = await send()
    expect([status, body]).toEqual([422, { told: 'by hand' }])
    expect(headers.get('content-type')).toBe('application/vnd.shop+json')
    const payment = (await shop.ask(`/v1/payments/${id}`, { apiKey })).body
    expect(payment).toMatchObject({ amount_capturable: 1_000 })
  })

  it('is tried again under a new key, where the earlier call is declared void', async () => {
    const { record, send, balance } = await parked('refunds', { amount: 200 })
    const callKey = (await ops(`/ops/record?${queryOf(record)}`)).body.record.waits_for
    const decision = { ...record, ...SIGNED, decision: 'retry', earlier_call_is_void: true }
    const misplaced = await opsPost('/ops/record/decisions', { ...decision, decision: 'not_executed' })
    expect(misplaced.body).toMatchObject({ status: 400, field: 'earlier_call_is_void' })
    const untrue = await opsPost('/ops/record/decisions', { ...decision, earlier_call_is_void: false })
    expect(untrue.body).toMatchObject({ status: 400, code: 'invalid_request' })
    const decided = await opsPost('/ops/record/decisions', decision)
    expect(decided.body).toMatchObject({
      state: 'retryable',
      record: { void_calls: [callKey] },
      audit: [{ ...SIGNED, action: 'void_call', call_key: callKey }],
    })
    expect((await send()).status).toBe(201)
    expect(await balance()).toMatchObject({ available: 800 })
  })

  it('is signed in a line that says who and why', async () => {
    const { record } = await parked('refunds', { amount: 100 })
    for (const { given, field } of [
      { given: { by: '   ' }, field: 'by' },
      { given: { by: 'ann\nbob' }, field: 'by' },
      { given: { why: ' \n ' }, field: 'why' },
    ]) {
      for (const { body } of [
        await opsPost('/ops/record/decisions', { ...record, ...SIGNED, decision: 'park', ...given }),
        await opsPost('/ops/record/evidence', { ...record, ...SIGNED, outcome: 'declined', ...given }),
      ])
        expect(body).toMatchObject({ status: 400, code: 'invalid_request', field })
    }
    const decision = { ...record, ...SIGNED, decision: 'not_executed', unchecked: true }
    const long = await opsPost('/ops/record/decisions', { ...decision, why: 'w'.repeat(990) })
    expect(long.body).toMatchObject({ status: 400, field: 'why' })
    const fits = await opsPost('/ops/record/decisions', { ...decision, why: 'w'.repeat(989) })
    expect(fits.body).toMatchObject({ state: 'completed', audit: [{ by: 'ann' }] })
  })

  it('of a request that moves nothing needs a reply', async () => {
    const record = { account: shop.account, operation: 'orders.create', key: 'a-handler-of-old' }
    await shop.service.pool.query(
      `INSERT INTO onlyonce.records (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id,
         created_at, attempted_at, changed_at, error_code)
       VALUES ($1, $2, $3, 'unknown', 1, gen_random_uuid(), 'o', '\\x01', 'default', now(), now(), now(), 'owner_vanished')`,
      Object.values(record),
    )
    const decision = { ...record, ...SIGNED, decision: 'executed' }
    const bare = await opsPost('/ops/record/decisions', decision)
    expect(bare.body).toMatchObject({ status: 400, field: 'reply' })
    const given = await opsPost('/ops/record/decisions', { ...decision, reply: { status: 204 } })
    expect(given.body).toMatchObject({ state: 'completed' })
  })

  it('is finished by a worker, and posted by the normal path, once there is evidence', async () => {
    const { record, send, balance, id, apiKey } = await parked('capture', { amount: 700, final: true })
    const evidence = { ...record, ...SIGNED, outcome: 'executed' }
    expect((await opsPost('/ops/record/evidence', evidence)).body).toMatchObject({ field: 'outcome' })
    await captureOf(sandbox.client, shop, record)
    expect((await opsPost('/ops/record/evidence', evidence)).body).toMatchObject({
      state: 'unknown',
      audit: [
        { ...SIGNED, action: 'add_evidence' },
        { ...SIGNED, action: 'unpark' },
      ],
    })
    const { once, operations } = shop.service
    const workers = startWorkers(once, {
      operations: Object.values(operations),
      defaults: false,
      workers: [reconciler(once)],
      everyMs: 20,
    })
    await waitUntil('the worker has settled it', async () => (await balance()).available === 700)
    await workers.stop()
    const payment = (await shop.ask(`/v1/payments/${id}`, { apiKey })).body
    expect(payment).toMatchObject({ status: 'succeeded', amount_captured: 700 })
    expect((await send()).body).toMatchObject({ amount_captured: 700 })
    expect((await opsPost('/ops/record/evidence', evidence)).body).toMatchObject({
      status: 400,
      field: 'key',
    })
  })
})

describe('accounts', () => {
  it('are listed page by page, the newest first', async () => {
    const made = [await shop.addCaller(), await shop.addCaller(), await shop.addCaller()]
    const ids = made.map(({ accountId }) => accountId).reverse()
    const first = (await ops('/ops/accounts?limit=2')).body
    expect(first.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2))
    expect(first.data[0]).toMatchObject({ name: 'Test', duplicates: 'warn' })
    const next = (await ops(`/ops/accounts?limit=2&cursor=${first.next_cursor}`)).body
    expect(next.data[0].id).toBe(ids[2])
    expect((await shop.ask('/ops/accounts')).status).toBe(401)
  })
})

describe('a payer', () => {
  async function payments() {
    const { apiKey, accountId } = await shop.addCaller()
    const pay = async (payer: string) => {
      const body = { ...TEA, payer, reference: 'r', duplicates: 'refuse', metadata: { mail: 'to alice' } }
      return (await shop.post('/v1/payments', body, { apiKey })).body.id as string
    }
    const [alice, bob] = [await pay('alice'), await pay('bob')]
    await shop.post(`/v1/payments/${alice}/refunds`, { amount: 1, metadata: { to: 'alice' } }, { apiKey })
    const find = async (id: string) => (await shop.ask(`/v1/payments/${id}`, { apiKey })).body
    const forget = (how: string, more: object = {}) =>
      opsPost(`/ops/accounts/${accountId}/payers/forget`, { mode: 'test', payer: 'alice', how, ...more })
    return { alice, bob, find, forget, apiKey }
  }

  it('is erased, with what the account has noted of the payments', async () => {
    const { alice, bob, find, forget, apiKey } = await payments()
    const { body } = await forget('erase')
    expect(body).toMatchObject({ payments: 1, pseudonym: null, next_cursor: null })
    expect(Date.parse(body.copies_until)).toBeGreaterThan(Date.now())
    const erased = await find(alice)
    expect(erased).toMatchObject({ payer: null, status: 'succeeded' })
    const refunds = (await shop.ask(`/v1/payments/${alice}/refunds`, { apiKey })).body.data
    // Not as a pattern, which any object would match.
    expect([erased.metadata, refunds.map(({ metadata }: Answer['body']) => metadata)]).toEqual([{}, [{}]])
    expect(await find(bob)).toMatchObject({ payer: 'bob', metadata: { mail: 'to alice' } })
    expect((await forget('erase')).body).toMatchObject({ payments: 0 })
  })

  it('is given another name, the same in all of them', async () => {
    const { alice, bob, find, forget } = await payments()
    expect((await forget('pseudonymise', { mode: 'live' })).body).toMatchObject({ payments: 0 })
    const { pseudonym } = (await forget('pseudonymise')).body
    expect(pseudonym).toMatch(/^payer_[0-9a-f]{32}$/)
    expect(await find(alice)).toMatchObject({ payer: pseudonym, metadata: { mail: 'to alice' } })
    // As the next page does.
    expect((await forget('pseudonymise', { payer: 'bob', pseudonym })).body).toMatchObject({ pseudonym })
    expect(await find(bob)).toMatchObject({ payer: pseudonym })
    const unknown = await opsPost(`/ops/accounts/acct_${'0'.repeat(32)}/payers/forget`, {
      mode: 'test',
      payer: 'alice',
      how: 'erase',
    })
    expect(unknown.status).toBe(404)
  })
})
