/** One order under many keys. */
import { notExecuted } from 'onlyonce'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import { makeId } from '../ids.ts'
import { expirer, forgetter } from '../payments/index.ts'
import { INSERT_PAYMENT } from '../payments/sql.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { type Answer, openTestService, send, TEST_OPS_TOKEN, type TestService } from './service.ts'

const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
let sandbox: Sandbox
/** Two servers on one database, one whose processor cannot be reached, and one whose answers are lost. */
let shop: TestService
let other: TestService
let cutOff: TestService
let lossy: TestService

beforeAll(async () => {
  sandbox = await openSandbox()
  shop = await openTestService({ gateways: { test: sandbox.client } })
  const { database } = shop
  other = await openTestService({ database, gateways: { test: sandbox.client } })
  const away = async () => {
    throw notExecuted(new Error('The processor is away.'))
  }
  cutOff = await openTestService({ database, gateways: { test: { ...sandbox.client, authorize: away } } })
  const lost = async () => {
    throw new Error('The answer was lost.')
  }
  const deaf = { ...sandbox.client, authorize: lost, findAuthorization: lost }
  lossy = await openTestService({ database, gateways: { test: deaf } })
})

let orders = 0
/** An order that was never made before, in an account of its own. */
async function newOrder(changes: object = {}) {
  orders += 1
  const { apiKey, account, accountId } = await shop.addCaller()
  const body = { ...TEA, payer: 'alice', reference: `order-${orders}`, duplicates: 'refuse', ...changes }
  const pay = (more: object = {}, key?: string, at = shop) =>
    at.post('/v1/payments', { ...body, ...more }, { apiKey, ...(key !== undefined && { key }) })
  return { apiKey, account, accountId, body, pay }
}

const ofOps = (path: string, body: object, method = 'PATCH') =>
  send(shop.url, path, { apiKey: TEST_OPS_TOKEN, method, body })

/** What the processor has taken for an account. */
async function chargesOf(account: string) {
  const journal = await sandbox.gateway.journal()
  return journal.filter(({ kind, metadata }) => kind === 'capture' && metadata.account === account)
}

const codesOf = (answers: readonly Answer[]) => answers.map(({ status, body }) => body.code ?? status).sort()

describe('twelve keys for one order, at two servers at once', () => {
  it.each([
    ['as the request says', {}, {}],
    ['as the account says', { duplicates: undefined }, {}],
    ['by a unique reference', { duplicates: undefined, reference: undefined }, { unique_reference: 'o-1' }],
  ])('are one charge, %s', async (how, changes, more) => {
    const { account, accountId, pay } = await newOrder({ ...changes, ...more })
    if (how === 'as the account says') await ofOps(`/ops/accounts/${accountId}`, { duplicates: 'refuse' })
    const asking = Array.from({ length: 12 }, (_, i) =>
      pay({}, `${accountId}-key-${i}`, i % 2 === 0 ? shop : other),
    )
    const answers = await Promise.all(asking)
    const [paid] = answers.filter(({ status }) => status === 201)
    expect(codesOf(answers)).toEqual([201, ...Array<string>(11).fill('duplicate_intent')])
    for (const { status, body } of answers) {
      if (status === 201) continue
      expect(body).toMatchObject({ status: 409, code: 'duplicate_intent', retryable: false })
      expect(body.payment).toBe(paid!.body.id)
    }
    expect(await chargesOf(account)).toHaveLength(1)
  })

  it.each(['reference', 'unique_reference'])(
    'wait for one that is being made, which no look can see, by its %s',
    async (by) => {
      const { accountId, pay } = await newOrder(by === 'reference' ? {} : { duplicates: 'warn' })
      const { id } = (await pay()).body
      const unseen = `${id.slice(0, -4)}0000`
      const same = { [by]: `${accountId}-unseen` }
      const admin = shop.database.direct({ max: 2 })
      const own = await admin.connect()
      await own.query('BEGIN')
      const copy = async (table: string, column: string, changes: object) => {
        const copied = `(jsonb_populate_record(t, $2)).*`
        await own.query(
          `INSERT INTO payments.${table} SELECT ${copied} FROM payments.${table} t WHERE ${column} = $1`,
          [id, JSON.stringify(changes)],
        )
      }
      await copy('payments', 'id', { id: unseen, ...same, gateway_id: null, idempotency_key: unseen })
      await copy('attempts', 'payment', { payment: unseen })
      const asking = pay(same)
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
      const waits = waitUntil('it waits', async () => (await admin.query(waiting)).rowCount === 1)
      await Promise.race([waits, asking])
      await own.query('COMMIT')
      own.release()
      expect((await asking).body).toMatchObject({ code: 'duplicate_intent', payment: unseen })
      await waits
    },
  )

  it('wait for one that is being made and refuses no others', async () => {
    const { account, body, pay } = await newOrder()
    const admin = shop.database.direct({ max: 2 })
    const own = await admin.connect()
    await own.query('BEGIN')
    const { amount, currency, payment_method: paymentMethod, payer, reference } = body
    const id = makeId('pay')
    const made = [account, id, amount, currency, 'automatic', paymentMethod, payer, reference]
    await own.query(INSERT_PAYMENT, [...made, '{}', id, 'stripe', null, 'warn'])
    const asking = pay()
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    const waits = waitUntil('it waits', async () => (await admin.query(waiting)).rowCount === 1)
    await Promise.race([waits, asking])
    await own.query(`UPDATE payments.payments SET status = 'succeeded', captured = amount WHERE id = $1`, [
      id,
    ])
    await own.query('COMMIT')
    own.release()
    expect((await asking).body).toMatchObject({ code: 'duplicate_intent', payment: id })
    await waits
  })

  it('are twelve where nobody asks for more than a warning', async () => {
    const { accountId, account, pay } = await newOrder()
    await ofOps(`/ops/accounts/${accountId}`, { duplicates: 'refuse' })
    const answers = await Promise.all(Array.from({ length: 3 }, () => pay({ duplicates: 'warn' })))
    expect(codesOf(answers)).toEqual([201, 201, 201])
    expect(await chargesOf(account)).toHaveLength(3)
    // One that refuses looks also for those that do not.
    expect((await pay()).body).toMatchObject({ code: 'duplicate_intent' })
  })
})

describe('another payment', () => {
  it('is no duplicate if its payer, amount or reference is another', async () => {
    const { pay } = await newOrder()
    expect((await pay()).status).toBe(201)
    for (const more of [{ payer: 'bob' }, { amount: 4_201 }, { reference: 'another' }, { currency: 'USD' }]) {
      expect((await pay(more)).status).toBe(201)
    }
    expect((await pay()).body.code).toBe('duplicate_intent')
  })

  it('with the same unique reference is one, whatever else it says', async () => {
    const { pay } = await newOrder({ duplicates: 'warn' })
    const first = await pay({ unique_reference: 'invoice-9' })
    expect(first.body.unique_reference).toBe('invoice-9')
    const second = await pay({ unique_reference: 'invoice-9', amount: 1, payer: 'bob', reference: 'r' })
    expect(second.body).toMatchObject({
      code: 'duplicate_intent',
      field: 'unique_reference',
      payment: first.body.id,
      payment_status: 'succeeded',
    })
    const { pay: elsewhere } = await newOrder({ duplicates: 'warn' })
    expect((await elsewhere({ unique_reference: 'invoice-9' })).status).toBe(201)
  })

  it('needs a reference where duplicates are refused, and claims no key without one', async () => {
    const { pay, account, accountId } = await newOrder({ reference: undefined })
    const refused = { status: 400, code: 'invalid_request', field: 'reference' }
    expect((await pay({}, `${accountId}-no-name`)).body).toMatchObject(refused)
    const before = await pay({ duplicates: undefined }, `${accountId}-before`)
    await ofOps(`/ops/accounts/${accountId}`, { duplicates: 'refuse' })
    expect((await pay({ duplicates: undefined })).body).toMatchObject(refused)
    expect((await pay({ duplicates: undefined }, `${accountId}-before`)).text).toBe(before.text)
    expect((await pay({ duplicates: 'warn' })).status).toBe(201)
    const { rows } = await shop.service.pool.query(
      'SELECT key FROM onlyonce.records WHERE account = $1 AND key = $2',
      [account, `${accountId}-no-name`],
    )
    expect(rows).toEqual([])
  })
})

describe('the refusal', () => {
  it('is not stored: the same key goes through when the earlier payment is canceled', async () => {
    const { pay, apiKey, account, accountId } = await newOrder()
    const first = await pay({ capture_method: 'manual' })
    const key = `${accountId}-second`
    const refused = await pay({}, key)
    expect(refused.body).toMatchObject({ payment: first.body.id, payment_status: 'requires_capture' })
    expect((await pay({}, key)).headers.get('idempotent-replayed')).toBeNull()
    const story = (await shop.ask(`/v1/idempotency-keys/${key}`, { apiKey })).body.uses
    expect(story).toMatchObject([
      { state: 'retryable', detail: expect.stringContaining('nothing of it has been done') },
    ])
    expect((await shop.post(`/v1/payments/${first.body.id}/cancel`, {}, { apiKey })).status).toBe(200)
    expect((await pay({}, key)).status).toBe(201)
    expect(await chargesOf(account)).toHaveLength(1)
  })

  it('ends with a decline', async () => {
    const { pay } = await newOrder({ payer: 'carol' })
    const declined = await pay({ payment_method: 'pm_card_chargeDeclined' })
    expect(declined.status).toBe(402)
    expect((await pay()).status).toBe(201)
  })

  it('ends when what was held has expired', async () => {
    const { pay } = await newOrder()
    const { id } = (await pay({ capture_method: 'manual' })).body
    await shop.service.pool.query(
      `UPDATE payments.payments SET capture_before = now() - interval '1 second' WHERE id = $1`,
      [id],
    )
    await expirer(shop.service).runOnce()
    expect((await pay()).status).toBe(201)
  })

  it('stands while nobody knows what became of the earlier payment', async () => {
    const { pay, account, accountId } = await newOrder()
    const key = `${accountId}-lost`
    expect((await pay({}, key, lossy)).body.code).toBe('outcome_pending')
    const second = await pay()
    expect(second.body).toMatchObject({ code: 'duplicate_intent', payment_status: 'processing' })
    const { pool } = shop.service
    await pool.query(`UPDATE payments.payments SET status = 'unknown' WHERE id = $1`, [second.body.payment])
    expect((await pay()).body).toMatchObject({ code: 'duplicate_intent', payment_status: 'unknown' })
    expect(await chargesOf(account)).toEqual([])
  })
})

describe('an earlier payment that was proved not to have been executed', () => {
  it('makes room, and its own key is told that it was given up', async () => {
    const { pay, apiKey, account, accountId } = await newOrder()
    const key = `${accountId}-in-vain`
    expect((await pay({}, key, cutOff)).status).toBe(503)
    const [earlier] = (await shop.ask('/v1/payments', { apiKey })).body.data
    expect(earlier.status).toBe('processing')
    expect((await pay()).status).toBe(201)
    const late = await pay({}, key)
    expect(late.body).toMatchObject({ status: 422, code: 'request_given_up', executed: 'no' })
    expect((await pay({}, key)).headers.get('idempotent-replayed')).toBe('true')
    expect(await chargesOf(account)).toHaveLength(1)
    const { body } = await shop.ask(`/v1/payments/${earlier.id}`, { apiKey })
    expect(body).toMatchObject({ status: 'failed', decline: { code: 'not_executed' } })
    const { rows } = await shop.service.pool.query(
      `SELECT count(*)::int AS told FROM onlyonce.events WHERE account = $1 AND type = 'payment.failed'`,
      [account],
    )
    expect(rows).toEqual([{ told: 1 }])
  })

  it('makes room together with all others, of more than one look', async () => {
    const { pay, account } = await newOrder()
    const left = Array.from({ length: 7 }, () => pay({ duplicates: 'warn' }, undefined, cutOff))
    expect((await Promise.all(left)).map(({ status }) => status)).toEqual(Array(7).fill(503))
    expect((await pay()).status).toBe(201)
    expect(await chargesOf(account)).toHaveLength(1)
  })

  it('and comes back at the same moment is charged, or the other one is: never both', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { pay, account, accountId } = await newOrder()
      const key = `${accountId}-came-back`
      expect((await pay({}, key, cutOff)).status).toBe(503)
      const [back, fresh] = await Promise.all([pay({}, key, other), pay()])
      expect([back.status, fresh.status].filter((status) => status === 201)).toHaveLength(1)
      expect(await chargesOf(account)).toHaveLength(1)
    }
  })
})

describe('the time of a duplicate', () => {
  const age = (id: string, hours: number) =>
    shop.service.pool.query(
      `UPDATE payments.attempts SET ended_at = now() - $2 * interval '1 hour' WHERE payment = $1`,
      [id, hours],
    )

  it('is no shorter than keys replay; after it the same order may come again', async () => {
    const { pay } = await newOrder()
    const { id } = (await pay()).body
    await age(id, 24.5)
    expect((await pay()).body).toMatchObject({ code: 'duplicate_intent', payment: id })
    await age(id, 26)
    const again = await pay()
    expect(again.status).toBe(201)
    expect((await pay()).body).toMatchObject({ code: 'duplicate_intent', payment: again.body.id })
  })

  it('never ends for a unique reference', async () => {
    const { pay } = await newOrder({ reference: undefined, duplicates: undefined, unique_reference: 'once' })
    const { id } = (await pay()).body
    await age(id, 24 * 365)
    expect((await pay()).body).toMatchObject({ code: 'duplicate_intent', payment: id })
  })
})

describe('a payer who is forgotten', () => {
  const forget = (accountId: string, how: string) =>
    ofOps(`/ops/accounts/${accountId}/payers/forget`, { mode: 'test', payer: 'alice', how }, 'POST')

  it.each(['erase', 'pseudonymise'])('is no reason to charge the same order twice: %s', async (how) => {
    const { pay, account, accountId } = await newOrder()
    const { id } = (await pay()).body
    expect((await forget(accountId, how)).body.payments).toBe(1)
    expect((await pay()).body).toMatchObject({ code: 'duplicate_intent', payment: id })
    expect(await chargesOf(account)).toHaveLength(1)
    // One without a payer, or of another, is another order.
    expect((await pay({ payer: undefined })).status).toBe(201)
    expect((await pay({ payer: 'bob' })).status).toBe(201)
  })

  it('is in no payment any more when the time of duplicates is over, but for those that are held', async () => {
    const { pay, account, accountId } = await newOrder()
    const [paid, held] = [await pay(), await pay({ amount: 1, capture_method: 'manual' })]
    await forget(accountId, 'erase')
    const { pool } = shop.service
    const kept = async () => {
      await forgetter(shop.service).runOnce()
      const text = `SELECT id FROM payments.payments p WHERE account = $1 AND p::text LIKE '%alice%' ORDER BY id`
      return (await pool.query(text, [account])).rows.map(({ id }) => id)
    }
    expect(await kept()).toEqual([paid.body.id, held.body.id])
    await pool.query(
      `UPDATE payments.payments SET intent_payer_until = now() - interval '1 second' WHERE account = $1`,
      [account],
    )
    expect(await kept()).toEqual([held.body.id])
    expect((await pay({ amount: 1 })).body).toMatchObject({ payment: held.body.id })
    // Without its payer it is like no other, also where those have none.
    expect((await pay({ payer: undefined })).status).toBe(201)
    expect((await pay()).status).toBe(201)
  })
})
