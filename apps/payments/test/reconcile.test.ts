/** Our books against those of a real sandbox processor: first alike, then different in every way that there is. */
import Stripe from 'stripe'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import type { Gateway } from '../gateway/index.ts'
import { countsOf, differencesOf, reconcile } from '../reconcile/index.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, type TestService } from './service.ts'

const HOUR_MS = 3_600_000
const TEA = { amount: 4_200, currency: 'eur', payment_method: 'pm_card_visa' }
const HELD = { ...TEA, capture_method: 'manual' }
const ALIKE = { missing_here: 0, missing_there: 0, amount_mismatch: 0, aged_unknown: 0 }

let sandbox: Sandbox
let shop: TestService
let stripe: Stripe

beforeAll(async () => {
  sandbox = await openSandbox()
  shop = await openTestService({ gateways: { test: sandbox.client } })
  const { apiKey, host, port } = sandbox.gateway
  stripe = new Stripe(apiKey, { host, port, protocol: 'http', maxNetworkRetries: 0 })
})

async function pay(body: object = TEA, expected = 201) {
  const { status, body: payment, text } = await shop.post('/v1/payments', body)
  expect(status, text).toBe(expected)
  return payment
}

const act = async (id: string, what: string, body: object = {}) => {
  const { status, text } = await shop.post(`/v1/payments/${id}/${what}`, body)
  expect(status, text).toBeLessThan(300)
}

/** Around now, whatever the time of day. */
function around(hours = 1) {
  const now = Date.now()
  return { from: new Date(now - hours * HOUR_MS), to: new Date(now + HOUR_MS) }
}

/** As `around`, without what is of another day. */
function today() {
  const { from, to } = around()
  const midnight = new Date().setUTCHours(0, 0, 0, 0)
  return {
    from: new Date(Math.max(from.getTime(), midnight)),
    to: new Date(Math.min(to.getTime(), midnight + 24 * HOUR_MS)),
  }
}

const look = (gateway: Gateway = sandbox.client, hours = 1) => reconcile(shop.service, gateway, around(hours))

/** The differences that were not there before something was done. */
async function newlyFound(work: () => Promise<unknown>, hours = 1) {
  const before = differencesOf((await look(sandbox.client, hours)).comparison)
  await work()
  const { comparison, fresh } = await look(sandbox.client, hours)
  const known = new Set(before.map((one) => JSON.stringify(one)))
  const found = differencesOf(comparison).filter((one) => !known.has(JSON.stringify(one)))
  expect(fresh).toBe(found.length)
  return found
}

const EVENTS = `
  SELECT account, payload::json FROM onlyonce.events WHERE type = 'reconciliation.difference' ORDER BY id`
const events = async () => (await shop.service.pool.query(EVENTS)).rows

/** A row like that of a payment, but for what is named. */
const copy = (id: string, changes: Readonly<Record<string, string>>) => {
  const columns = ['account', 'id', 'status', 'amount', 'currency', 'capture_method', 'payment_method']
  const all = [...columns, 'idempotency_key', 'gateway', 'gateway_id', 'captured', 'created_at', 'updated_at']
  const values = all.map((column) => changes[column] ?? column)
  const text = `INSERT INTO payments.payments (${all}) SELECT ${values} FROM payments.payments WHERE id = $1`
  return shop.service.pool.query(text, [id])
}

it('books that were kept in every usual way are alike', async () => {
  await pay()
  await pay({ ...TEA, currency: 'jpy' })
  await pay({ ...TEA, payment_method: 'pm_card_chargeDeclined' }, 402)
  const [captured, canceled, left, partly] = [
    await pay(HELD),
    await pay(HELD),
    await pay(HELD),
    await pay(HELD),
  ]
  await act(captured.id, 'capture', { amount: 1_000 })
  await act(captured.id, 'capture', { amount: 1_200, final: true })
  await act(canceled.id, 'cancel')
  await act(partly.id, 'capture', { amount: 300 })
  const { id } = await pay()
  await act(id, 'refunds', { amount: 100 })
  await act(id, 'refunds', { amount: 200 })
  expect(left.status).toBe('requires_capture')
  const { books, comparison, fresh } = await look()
  expect({ books, fresh, ...countsOf(comparison) }).toEqual({
    books: 'stripe:test',
    fresh: 0,
    matched: 10,
    ...ALIKE,
  })
  expect(await events()).toEqual([])
})

describe('what is under way', () => {
  it('is left alone until it has ended', async () => {
    const { id } = await pay(HELD)
    await sandbox.gateway.fault({ fault: 'hold_after', on: 'capture' })
    const capturing = act(id, 'capture')
    await waitUntil('it is captured there', async () => (await sandbox.gateway.state()).held.length === 1)
    const meanwhile = await look()
    await sandbox.gateway.release()
    await capturing
    expect(countsOf(meanwhile.comparison)).toMatchObject(ALIKE)
    const { comparison } = await look()
    expect(countsOf(comparison)).toEqual({ ...ALIKE, matched: meanwhile.comparison.matched + 1 })
  })

  it('or came while the processor was read, is no difference', async () => {
    const { id } = await pay(HELD)
    const refunded = await pay()
    const busy: Gateway = {
      ...sandbox.client,
      async *movements(range) {
        yield* sandbox.client.movements(range)
        await Promise.all([pay(), act(id, 'capture'), act(refunded.id, 'refunds')])
      },
    }
    // One day, which is read once, also where an hour ago was yesterday.
    const { comparison } = await reconcile(shop.service, busy, today())
    expect(countsOf(comparison)).toMatchObject(ALIKE)
    const later = await reconcile(shop.service, sandbox.client, today())
    expect(countsOf(later.comparison)).toEqual({ ...ALIKE, matched: comparison.matched + 4 })
  })

  it('and reached the processor hours after it was written down, is found there', async () => {
    const { id } = await pay()
    await shop.service.pool.query(
      `UPDATE payments.payments SET created_at = created_at - interval '20 hours' WHERE id = $1`,
      [id],
    )
    expect(countsOf((await look(sandbox.client, 22)).comparison)).toMatchObject(ALIKE)
    const { from } = around()
    const before = { from: new Date(from.getTime() - 21 * HOUR_MS), to: from }
    const { comparison } = await reconcile(shop.service, sandbox.client, before)
    expect(countsOf(comparison)).toEqual({ ...ALIKE, matched: 0 })
  })
})

describe('what differs', () => {
  const order = { amount: 700, currency: 'eur', payment_method: 'pm_card_visa', confirm: true }
  const charge = (metadata: Record<string, string> = {}) =>
    stripe.paymentIntents.create({ ...order, metadata })

  it('is a charge behind our back: nobody knows whose', async () => {
    const found = await newlyFound(charge)
    expect(found).toMatchObject([{ difference: 'missing_here', theirs: { moved: 700, account: null } }])
    expect((await events()).at(-1)).toMatchObject({
      account: 'stripe:test',
      payload: {
        object: 'reconciliation_difference',
        books: 'stripe:test',
        run: expect.stringMatching(/^rec_/),
        kind: 'payment',
        ...found[0],
      },
    })
  })

  it('is one that names an account: that one is told, if it is ours', async () => {
    const found = await newlyFound(async () => {
      await charge({ account: shop.account, payment: 'pay_nobody' })
      await charge({ account: `acct_${'0'.repeat(32)}:test` })
      await charge({ account: shop.account.replace(':test', ':live') })
    })
    expect(found).toHaveLength(3)
    const told = (await events()).slice(-3).map(({ account }) => account)
    expect(told.sort()).toEqual([shop.account, 'stripe:test', 'stripe:test'].sort())
  })

  it('is a refund behind our back', async () => {
    const payment = await pay()
    const [{ gateway_id: paymentIntent }] = payment.attempts
    const found = await newlyFound(() => stripe.refunds.create({ payment_intent: paymentIntent, amount: 50 }))
    expect(found).toMatchObject([{ difference: 'missing_here', theirs: { kind: 'refund', moved: 50 } }])
  })

  it('is an amount: money was taken there that we think is only held', async () => {
    const payment = await pay(HELD)
    const found = await newlyFound(() =>
      stripe.paymentIntents.capture(payment.attempts[0].gateway_id, { amount_to_capture: 900 }),
    )
    expect(found).toMatchObject([
      { difference: 'amount_mismatch', ours: { id: payment.id, moved: 0 }, theirs: { moved: 900 } },
    ])
  })

  it('is a payment of which the processor knows nothing', async () => {
    const { id } = await pay()
    const found = await newlyFound(() => copy(id, { id: `id || '_copy'`, gateway_id: `'pi_nowhere'` }))
    expect(found).toMatchObject([{ difference: 'missing_there', ours: { gateway_id: 'pi_nowhere' } }])
    expect((await events()).at(-1)).toMatchObject({
      account: shop.account,
      payload: { ours: { moved: 4_200 } },
    })
  })

  it('is one that is unknown for a day, and not one that is younger', async () => {
    const { id } = await pay()
    const unknown = (suffix: string, hours: number) =>
      copy(id, {
        id: `id || '${suffix}'`,
        status: `'unknown'`,
        captured: '0',
        gateway_id: 'NULL',
        created_at: `now() - interval '${hours} hours'`,
      })
    const found = await newlyFound(() => Promise.all([unknown('_old', 25), unknown('_new', 23)]), 26)
    expect(found).toMatchObject([
      { difference: 'aged_unknown', ours: { id: `${id}_old`, moved: null }, theirs: null },
    ])
  })

  it('is told once, however often it is found', async () => {
    const told = (await events()).length
    const runs = await Promise.all([look(), look(), look(sandbox.client, 26)])
    expect(runs.map(({ fresh }) => fresh)).toEqual([0, 0, 0])
    expect(differencesOf(runs[2].comparison)).toHaveLength(8)
    expect(await events()).toHaveLength(told)
    expect(told).toBe(8)
  })
})

it('a charge whose metadata nobody can store is told all the same', async () => {
  const odd: Gateway = {
    ...sandbox.client,
    async *movements(range) {
      yield* sandbox.client.movements(range)
      const at = new Date().toISOString()
      const money = { amount: 1, currency: 'EUR', moved: 1, at }
      yield { kind: 'payment', gateway_id: 'pi_odd', account: 'a\0:test', reference: 'b\ud800', ...money }
    },
  }
  const { fresh } = await look(odd)
  expect(fresh).toBe(1)
  expect((await events()).at(-1)).toMatchObject({
    account: 'stripe:test',
    payload: { theirs: { account: 'a\uFFFD:test', reference: 'b\uFFFD' } },
  })
})

it('a run whose reading broke off is not kept', async () => {
  const count = async () =>
    (await shop.service.pool.query('SELECT count(*)::int FROM payments.reconciliation_runs')).rows[0].count
  const before = await count()
  await sandbox.gateway.fault({ fault: 'error_before', on: 'lookup' })
  await expect(look()).rejects.toThrow()
  expect(await count()).toBe(before)
})

it.each([
  ['ends before it begins', 0, 'ends before it begins'],
  ['has no end in sight', 400 * 24, 'At most 366 days'],
])('a time that %s is refused', async (_, hours, message) => {
  const to = new Date()
  const range = { from: new Date(to.getTime() - hours * HOUR_MS), to }
  await expect(reconcile(shop.service, sandbox.client, range)).rejects.toThrow(message)
})
